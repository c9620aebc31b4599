"""When a member may be sent again: at once, but for one whose storage failed, which is given time to come back."""

from __future__ import annotations

import time
from collections import Counter

from sfora_ray.config.member import Cause

PAUSES_SECONDS = (5.0, 30.0)
"""After the first failure of a member's storage, and after each further one."""


class Pauses:
    """The members that are not to be sent again yet."""

    def __init__(self) -> None:
        self._faults: Counter[str] = Counter()
        self._not_before: dict[str, float] = {}

    def note(self, member: str, cause: Cause) -> None:
        """Let a pause begin if the member's storage is to blame for its end."""
        if cause != "storage":
            return
        pause = PAUSES_SECONDS[min(self._faults[member], len(PAUSES_SECONDS) - 1)]
        self._faults[member] += 1
        self._not_before[member] = time.monotonic() + pause

    def is_over(self, member: str) -> bool:
        """Return whether the member may be sent now."""
        return time.monotonic() >= self._not_before.get(member, 0.0)
