"""A thread that keeps the tracker up to date while members train, and never stands in their way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sfora_ray.pack.mirror import Mirror

_log = logging.getLogger(__name__)


@contextmanager
def following(mirror: Mirror, every_seconds: float = 2.0) -> Iterator[None]:
    """Let the mirror follow the run folder until the block ends.

    A tracker that does not answer is asked again at the next turn: what it misses stays in the run folder.
    """
    stop = threading.Event()

    def follow() -> None:
        while not stop.wait(every_seconds):
            try:
                mirror.follow()
            except Exception as error:  # a file between two writes, a server away: the next turn may go well
                _log.warning("the tracker missed a turn: %s", error)

    thread = threading.Thread(target=follow, name="tracker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=60)
