"""Runs of a sweep that a tracker shows as running though nobody works on it any more, and how they are closed."""

from __future__ import annotations

from sfora_ray.pack.abandoned import Closed, children_first, close_left
from sfora_ray.sweep.ending import ended, key_prefix, sweep_status
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.tracking import Tracker


def close_abandoned(sweep: SweepFolder, tracker: Tracker) -> list[Closed]:
    """Close what is left running of a sweep that nobody writes, each run with its true state; nothing is opened.

    Raises:
        TrackerError: the tracker does not answer.
    """
    tracker.check()
    prefix, status = key_prefix(sweep.manifest()), sweep_status(sweep)
    ends = {trial.name: trial.end for trial in sweep.trials()}
    reason = f"its driver ended without closing it; the rest is told by `sfora-ray mlflow sync {sweep.path}`"
    closed = []
    for left in children_first(tracker.running(prefix)):
        part = left.key.removeprefix(prefix)
        end = ends.get(part)
        # A trial that has ended tells its own reason.
        closed.append(close_left(tracker, left, ended(part, end, status), reason if end is None else ""))
    return closed
