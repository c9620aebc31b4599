"""A lock between processes of one node, so that members which start together prepare the data once."""

from __future__ import annotations

import errno
import fcntl
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_log = logging.getLogger(__name__)

_TAKEN = (errno.EAGAIN, errno.EACCES)
_SECONDS_BETWEEN_TRIES = 0.1
_SECONDS_BEFORE_A_WORD = 10.0
_SECONDS_BETWEEN_WORDS = 60.0


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; waits for its holder, and says so. The kernel frees it when a holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        _wait(stream, path)
        yield


def _wait(stream: IO[str], path: Path) -> None:
    begun = time.monotonic()
    next_word = begun + _SECONDS_BEFORE_A_WORD
    while not _take(stream):
        now = time.monotonic()
        if now >= next_word:
            next_word = now + _SECONDS_BETWEEN_WORDS
            _log.warning("%s: waiting for %.0f s for the process that holds it to prepare the data", path, now - begun)
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _take(stream: IO[str]) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True
