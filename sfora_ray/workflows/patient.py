"""Telling a tracker what is on disk anyway: it is waited for, but not for ever, and no fault of it is raised."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sfora_ray.errors import TrackerError
from sfora_ray.tracking import RunStatus, without_secrets

PATIENCE_SECONDS: dict[RunStatus, float] = {"FINISHED": 60.0, "FAILED": 60.0, "KILLED": 8.0}
_SECONDS_BETWEEN_TRIES = 2.0


def told_patiently(
    tell: Callable[[], None], status: RunStatus, seconds: float, later: str, say: Callable[[str], None]
) -> bool:
    """Tell, again and again while the tracker is away, ``seconds`` at most; return whether it was told.

    Args:
        tell: tells everything; telling twice changes nothing.
        status: how the work ended; after an interruption nothing is said while waiting.
        seconds: how long an absent tracker is waited for.
        later: the command that tells it later.
        say: told what is missed.
    """
    faults: list[str] = []
    telling = threading.Thread(target=_keep_telling, args=(tell, seconds, faults), daemon=True)
    telling.start()
    if status == "KILLED":
        telling.join(seconds)
    else:
        _join_aloud(telling, faults, seconds, say)
    if telling.is_alive() or faults:
        fault = faults[-1] if faults else f"it gave no answer within {seconds:.0f} s."
        say(f"the tracker missed something: {fault} When it is back: {later}")
        return False
    return True


def _keep_telling(tell: Callable[[], None], patience: float, faults: list[str]) -> None:
    """Try again until all is told or the tracker has been away for so long; leave the last fault, if any stays."""
    end: float | None = None
    while True:
        try:
            tell()
        except Exception as error:
            end = time.monotonic() + patience if end is None else end
            faults.append(without_secrets(str(error)))
            if time.monotonic() + _SECONDS_BETWEEN_TRIES >= end or not isinstance(error, TrackerError):
                return
            time.sleep(_SECONDS_BETWEEN_TRIES)
        else:
            faults.clear()
            return


def _join_aloud(telling: threading.Thread, faults: list[str], patience: float, say: Callable[[str], None]) -> None:
    """Wait until the thread ends, and say once that the tracker is away."""
    while telling.is_alive() and not faults:
        telling.join(0.1)
    if telling.is_alive():
        say(f"waiting up to {patience:.0f} s for the tracker: {faults[0]}")
    telling.join()
