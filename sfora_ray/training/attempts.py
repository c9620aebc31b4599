"""Which attempt at a member may write in its folder, and why earlier ones ended."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence

from sfora_ray.config.member import Cause
from sfora_ray.training.announcer import now_ms
from sfora_ray.training.member_folder import AttemptEvent, MemberFolder

SILENT_END = "its process ended without a word, as after a kill or a lost node"


def begin_attempt(folder: MemberFolder, step: int) -> str:
    """Record that this process now trains the member from ``step`` on; return the attempt's name."""
    holder = secrets.token_hex(6)
    folder.append_attempt(
        AttemptEvent(
            event="started", holder=holder, time_ms=now_ms(), host=socket.gethostname(), pid=os.getpid(), step=step
        )
    )
    return holder


def current_attempt(folder: MemberFolder) -> AttemptEvent | None:
    """Return the start of the newest attempt, or None if there was none."""
    return next((event for event in reversed(folder.attempts()) if event.event == "started"), None)


def end_attempt(folder: MemberFolder, cause: Cause, reason: str) -> None:
    """Record why the newest attempt ended early, unless it has said so itself or never began."""
    attempt = current_attempt(folder)
    if attempt is None or any(event.event == "ended" and event.holder == attempt.holder for event in folder.attempts()):
        return
    progress = folder.progress()
    reached = progress.step_of_all if progress else attempt.step
    folder.append_attempt(
        AttemptEvent(event="ended", holder=attempt.holder, time_ms=now_ms(), step=reached, cause=cause, reason=reason)
    )


def restarts(events: Sequence[AttemptEvent]) -> tuple[str, ...]:
    """Return why each attempt but the newest ended, oldest first; one that was asked to stop is left out."""
    said = {event.holder: event for event in events if event.event == "ended"}
    started = [event.holder for event in events if event.event == "started"]
    ends = [said.get(holder) for holder in started[:-1]]
    return tuple(SILENT_END if end is None else end.reason for end in ends if end is None or end.cause)
