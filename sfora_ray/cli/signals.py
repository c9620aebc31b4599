"""What Ctrl-C, a scheduler or a container may ask for: an orderly end, and if that is not enough, one at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

import psutil

INTERRUPTED = 130
"""Exit code of a command that was told to end."""

_SECONDS_TO_END = 28.0
"""Whatever hangs then, a server or a driver of a device, the process is gone within half a minute."""


def answer_signals() -> None:
    """Let the first SIGINT or SIGTERM interrupt the command, and the second end it and what it started."""
    told = threading.Event()

    def answer(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if told.is_set():
            _leave_at_once()
        told.set()
        _say(f"{signal.Signals(signum).name}: saving what is under way; a second signal ends at once")
        _end_in_time()
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, answer)


def _end_in_time() -> None:
    watchdog = threading.Timer(_SECONDS_TO_END, _leave_at_once)
    watchdog.daemon = True
    watchdog.start()


def _leave_at_once() -> None:
    """Kill what this process started, then end it. What was put into a session of its own is meant to live on.

    Members would notice and follow by themselves, as would most of a local Ray; but two of its agents would stay.
    """
    with suppress(psutil.Error):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == os.getsid(0):
                    process.kill()
    os._exit(INTERRUPTED)


def _say(text: str) -> None:
    """Write to standard error past Python's streams, which the interrupted code may be holding."""
    try:
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"\n{text}\n".encode())
    except (OSError, ValueError):
        return  # nobody reads it any more
