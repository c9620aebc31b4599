"""A thread that keeps the tracker up to date while the driver works, and never stands in its way.

It opens the runs when the tracker first answers, tells what is new every few seconds, and renews the heartbeat by
which others see that the driver lives. A tracker that is away is asked again, less and less often: what it misses is
in the run folder.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from sfora_ray.tracking import without_secrets

_log = logging.getLogger(__name__)

_LONGEST_PAUSE = 8
"""Turns that are left out at most while the tracker is away."""
_SECONDS_TO_LEAVE = 2.0
_SECONDS_BETWEEN_WORDS = 600.0


class Followed(Protocol):
    """What tells a tracker about a folder that grows."""

    @property
    def busy(self) -> threading.Lock:
        """Return what is held by the thread that tells."""
        ...

    def beat(self) -> None:
        """Tell, now and then, that the driver lives."""
        ...

    def turn(self) -> Iterator[None]:
        """Tell what is new; it may be left after every run told."""
        ...


@contextmanager
def following(mirror: Followed, every_seconds: float = 2.0) -> Iterator[None]:
    """Let the mirror follow the run folder until the block ends; the tracker need not answer when it begins.

    The block may tell the tracker itself, with ``mirror.busy`` held; the heartbeat goes on meanwhile.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_follow, args=(mirror, stop, every_seconds), name="tracker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_SECONDS_TO_LEAVE)  # a request under way ends by itself; `mirror.busy` says when


def _follow(mirror: Followed, stop: threading.Event, every_seconds: float) -> None:
    outage, missed = _Outage(), 0
    while not stop.wait(every_seconds * min(2**missed, _LONGEST_PAUSE)):
        try:
            _turn(mirror, stop)
        except Exception as error:  # a file between two writes, a server away: the next turn may go well
            outage.note(error)
            missed = min(missed + 1, _LONGEST_PAUSE)
        else:
            outage.over()
            missed = 0


def _turn(mirror: Followed, stop: threading.Event) -> None:
    mirror.beat()
    if not mirror.busy.acquire(blocking=False):
        return  # it is being told just now
    try:
        for _ in mirror.turn():
            if stop.is_set():
                return
            mirror.beat()
    finally:
        mirror.busy.release()


@dataclass
class _Outage:
    """Says that the tracker is away, now and then, and that it is back."""

    _said: float | None = None

    def note(self, error: Exception) -> None:
        now = time.monotonic()
        if self._said is None or now - self._said > _SECONDS_BETWEEN_WORDS:
            self._said = now
            _log.warning("the tracker misses what happens, and will hear it later: %s", without_secrets(str(error)))

    def over(self) -> None:
        if self._said is not None:
            _log.warning("the tracker is back and has heard everything")
        self._said = None
