"""A process that outlives a sweep's driver and closes its runs if it was killed; see :mod:`sfora_ray.pack.keeper`.

While it waits it has imported the standard library alone.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sfora_ray.pack.keeper import Keeper, keeping, main

if TYPE_CHECKING:
    from sfora_ray.sweep.folder import SweepFolder

_log = logging.getLogger(__name__)


@contextmanager
def kept(sweep: SweepFolder) -> Iterator[Keeper]:
    """Have the runs of a sweep closed even if this process is killed within the block, or leaves it undismissed."""
    with keeping(sweep.path, sweep.config().pack.tracking, "sfora_ray.sweep.keeper") as keeper:
        yield keeper


def closed(path: Path) -> bool:
    """Close the runs of the sweep in ``path`` unless some process writes it; return whether they are closed."""
    from sfora_ray.errors import BusyError
    from sfora_ray.pack.lock import run_lock
    from sfora_ray.sweep.abandoned import close_abandoned
    from sfora_ray.sweep.folder import SweepFolder

    sweep = SweepFolder.open(path)
    tracker = sweep.config().pack.tracking.build()
    tracker.check()  # before the lock: it imports for seconds, and waits for a server that is away
    try:
        with run_lock(path, patience_seconds=0):
            found = close_abandoned(sweep, tracker)
    except BusyError:
        return False
    for one in found:
        _log.info("closed %s as %s: %s", one.name, one.status, one.reason)
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), closed)
