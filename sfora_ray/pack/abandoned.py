"""Runs that a tracker shows as running though nobody trains them any more, and how they are closed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sfora_ray.errors import BusyError
from sfora_ray.pack.ending import ended, final_results, pack_status
from sfora_ray.pack.mirror import HEARTBEAT_TAG, REASON_TAG, key_prefix
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.tracking import OpenRun, RunStatus, Tracker


@dataclass(frozen=True)
class Closed:
    """A run that was closed, and why."""

    name: str
    status: RunStatus
    reason: str


def close_abandoned(run: RunFolder, tracker: Tracker) -> list[Closed]:
    """Close what is left running of a pack that nobody writes, each run with its true state; nothing is opened.

    The caller has seen that nobody writes the run. Its home, where it is in an object store, is asked before each run
    is closed, for another machine may take it on at any moment.

    Raises:
        BusyError: another machine has taken it on; nothing more is closed.
        StorageError: its home does not answer.
        TrackerError: the tracker does not answer.
    """
    tracker.check()
    results, prefix, status = final_results(run), key_prefix(run.manifest()), pack_status(run)
    reason = f"its driver ended without closing it; the rest is told by `sfora-ray mlflow sync {run.path}`"
    found = children_first(tracker.running(prefix))
    closed = []
    for left in found:
        part = left.key.removeprefix(prefix)
        _refuse_taken_on(run)
        # A member that has a result tells its own reason.
        closed.append(close_left(tracker, left, ended(part, results, status), "" if part in results else reason))
    return closed


def close_silent(tracker: Tracker, silent_minutes: float) -> list[Closed]:
    """Close as KILLED every running run of packs whose driver's last heartbeat is older than that.

    Clocks of drivers and of this machine should agree to the minute.

    Raises:
        TrackerError: the tracker does not answer.
    """
    tracker.check()
    closed = []
    beats = _Beats(tracker, {})
    for left in children_first(tracker.running()):
        silent = time.time() - beats.of(left) / 1000
        if silent > 60 * silent_minutes:
            reason = f"its driver has given no sign of life for {silent / 60:.0f} minutes"
            closed.append(close_left(tracker, left, "KILLED", reason))
    return closed


def _refuse_taken_on(run: RunFolder) -> None:
    if run.home.is_written():
        raise BusyError(f"{run.home.place_of(run.path)}: its pack is alive, got a lease. Leave it, or stop it first.")


@dataclass(frozen=True)
class _Beats:
    """Last heartbeats, Unix milliseconds, by the id of the parent that carries them."""

    tracker: Tracker
    known: dict[str, int]

    def of(self, run: OpenRun) -> int:
        parent = run.parent or run.id
        if parent not in self.known:
            tags = run.tags if parent == run.id else self.tracker.tags(parent)
            self.known[parent] = int(tags.get(HEARTBEAT_TAG, run.started_ms))
        return self.known[parent]


def close_left(tracker: Tracker, run: OpenRun, status: RunStatus, reason: str) -> Closed:
    """Close one run, with a reason if there is one to tell."""
    if reason:
        tracker.set_tags(run.id, {REASON_TAG: reason})
    tracker.close_run(run.id, status)
    return Closed(run.name, status, reason)


def children_first(runs: Sequence[OpenRun]) -> list[OpenRun]:
    """Return the runs with parents last: while one runs, somebody will look after its children."""
    return sorted(runs, key=lambda run: run.parent is None)
