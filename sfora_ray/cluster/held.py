"""What a cluster still holds, for whichever job: resources and placement groups. After a pack it is to be nothing."""

from __future__ import annotations

import time

from ray.util import placement_group_table

from sfora_ray.cluster.capacity import all_resources, free_resources

_SECONDS_TO_SETTLE = 40.0
_COUNTED = ("CPU", "GPU", "memory")


def held_after_all(seconds: float = _SECONDS_TO_SETTLE) -> list[str]:
    """Wait, as long as that at most, for Ray to count what was let go; return what is held all the same, in words."""
    end = time.monotonic() + seconds
    while (held := _held()) and time.monotonic() < end:
        time.sleep(0.2)
    return held


def _held() -> list[str]:
    free, total = free_resources(), all_resources()
    taken = [f"{total[name] - free[name]:g} {name}" for name in _COUNTED if free.get(name, 0) < total.get(name, 0)]
    groups = placement_group_table()
    return taken + [f"placement group {key}" for key, group in groups.items() if group["state"] != "REMOVED"]
