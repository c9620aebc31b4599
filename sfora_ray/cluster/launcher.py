"""The launcher of a cluster: never more members under way than fit, so that none spins for want of room.

Two budgets guard a member, each of ``resources.max_failures``: Ray Train's for the deaths of its workers within one
run, and the launcher's for the deaths of the run itself, after which the member is sent again. Either way it goes on
from its newest checkpoint. What the input or the mathematics is to blame for is not tried again.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray import ObjectRef
from ray.exceptions import RayError, TaskCancelledError

from sfora_ray.cluster.backend import collective_backend
from sfora_ray.cluster.capacity import members_that_fit, waited_in_vain
from sfora_ray.cluster.causes import End, end_of
from sfora_ray.cluster.gather import gather_blocks, sum_moments
from sfora_ray.cluster.leftovers import remove_orphaned_groups, wait_until_gone
from sfora_ray.cluster.member import Landing, MemberTask, run_member, send
from sfora_ray.config.member import Cause, MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.folds import Moments
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.launcher import MemberState
from sfora_ray.pack.notes import Outage, events_since, note_end, note_failure, note_result, note_unsaved
from sfora_ray.pack.pauses import Pauses
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.member_folder import MemberFolder

_log = logging.getLogger(__name__)

_SECONDS_TO_SAVE = 10.0
_SECONDS_TO_CANCEL = 6.0
_SECONDS_TO_STOP = 20.0
_SECONDS_TO_LAND = 60.0
_SECONDS_BETWEEN_LOOKS = 0.1


@dataclass(frozen=True)
class _Flight:
    """A member under way: its task, the node's folder of Train's records, and how long its book of attempts was."""

    spec: MemberSpec
    ref: ObjectRef[dict[str, Any]]
    scratch: Path
    events_before: int


class ClusterMembers:
    """Members as Ray tasks that each hold a Train run."""

    def __init__(self, run: RunFolder, specs: Sequence[MemberSpec]) -> None:
        self._run = run
        self._resources = run.manifest().config.resources
        self._backend = collective_backend(self._resources)
        self._waiting = list(specs)
        self._flights: dict[str, _Flight] = {}
        self._states: dict[str, MemberState] = {spec.id: "queued" for spec in specs}
        self._crashes: Counter[str] = Counter()
        self._pauses = Pauses()
        self._outage = Outage()
        self._last_room = time.monotonic()

    def poll(self) -> Mapping[str, MemberState]:
        """Collect what has ended, start what now fits, and give up on what cannot be scheduled.

        Raises:
            SforaError: a member waited longer than the schedule time-out; the message names what is missing.
        """
        for flight in self._landed():
            end = self._settle(flight)
            if end is not None:
                self._after_crash(flight, end)
        if self._crashes:
            remove_orphaned_groups()
        room = members_that_fit(self._resources) - len(self._flights)
        for spec in self._ready()[: max(room, 0)]:
            with self._outage.passed_over():
                self._send(spec)
        self._refuse_endless_waiting()
        return dict(self._states)

    def stop(self) -> None:
        """Let members save their state, cancel those that do not, and wait until nothing of them is left."""
        deadline = time.monotonic() + _SECONDS_TO_STOP
        self._waiting.clear()
        self._ask_to_stop()
        self._let_land(_SECONDS_TO_SAVE)
        self._cancel(force=False)
        self._let_land(_SECONDS_TO_CANCEL)
        self._cancel(force=True)
        for flight in list(self._flights.values()):
            self._forget(flight)
            note_unsaved(self._run.member(flight.spec), flight.events_before)
        self._states |= {name: "stopped" for name, state in self._states.items() if state not in ("finished", "failed")}
        if not wait_until_gone(max(1.0, deadline - time.monotonic())):
            _log.warning("members: their actors still held resources %g s after they were stopped", _SECONDS_TO_STOP)

    def gather(self, finished: Sequence[MemberSpec]) -> PackBlocks:
        """Return the blocks of these members by way of the object store."""
        return gather_blocks(self._run, finished, self._resources.object_store_fraction)

    def moments(self, blocks: PackBlocks) -> Moments:
        """Return the moments of the train blocks, summed by tasks over rows."""
        return sum_moments(blocks, self._resources.object_store_fraction)

    def _ready(self) -> list[MemberSpec]:
        """Return the waiting members that may be sent now."""
        return [spec for spec in self._waiting if self._pauses.is_over(spec.id)]

    def _send(self, spec: MemberSpec) -> None:
        folder = self._run.member(spec)
        for stale in (folder.progress_path, folder.stop_path, folder.result_path):
            stale.unlink(missing_ok=True)
        folder.home.publish()
        events_before = len(folder.attempts())
        order = MemberTask(
            spec=spec,
            folder=folder.path.absolute(),
            place=folder.place,
            working_dir=Path.cwd(),
            scratch=Path(tempfile.mkdtemp(prefix=f"sfora-train-{spec.id}-")),
            backend=self._backend,
        )
        self._flights[spec.id] = _Flight(spec, send(run_member, order), order.scratch, events_before)
        self._waiting.remove(spec)
        self._states[spec.id] = "starting"

    def _landed(self) -> list[_Flight]:
        """Return the flights whose task has ended, noting which of the others train."""
        for flight in self._flights.values():
            if self._run.member(flight.spec).progress() is not None:
                self._states[flight.spec.id] = "running"
        return [one for one in self._flights.values() if ray.wait([one.ref], timeout=0)[0]]

    def _settle(self, flight: _Flight) -> End | None:
        """Take a member out of the air and record its result; return why it has none, if so."""
        landing = _landing(flight)
        self._forget(flight)
        result = landing.result
        if result is None and landing.end is not None:
            return landing.end
        self._states[flight.spec.id] = "stopped" if result is None else result.status
        if result is None:
            note_unsaved(self._run.member(flight.spec), flight.events_before)
        elif result.status != "stopped":
            note_result(self._run.member(flight.spec), result)
        return None

    def _after_crash(self, flight: _Flight, end: End) -> None:
        """Send the member again if that may help and has not been done too often; else it has failed."""
        spec, folder = flight.spec, self._run.member(flight.spec)
        with self._outage.passed_over():
            folder.home.refresh()
        note_end(folder, flight.events_before, end.cause, end.reason)
        self._crashes[spec.id] += 1
        if end.again and self._crashes[spec.id] <= self._resources.max_failures:
            self._pauses.note(spec.id, end.cause)
            self._waiting.insert(0, spec)
            self._states[spec.id] = "queued"
            return
        note_failure(spec, folder, *_told(folder, end))
        self._states[spec.id] = "failed"

    def _forget(self, flight: _Flight) -> None:
        del self._flights[flight.spec.id]
        self._last_room = time.monotonic()
        shutil.rmtree(flight.scratch, ignore_errors=True)
        with suppress(OSError):
            self._run.member(flight.spec).stop_path.unlink(missing_ok=True)

    def _ask_to_stop(self) -> None:
        """Ask members that train to save and leave; one that has not begun has nothing to save."""
        for flight in self._flights.values():
            if self._run.member(flight.spec).progress() is None:
                ray.cancel(flight.ref)
            else:
                with suppress(OSError):
                    self._run.member(flight.spec).ask_to_stop()

    def _let_land(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._flights and time.monotonic() < deadline:
            for flight in self._landed():
                if self._settle(flight) is not None:
                    note_unsaved(self._run.member(flight.spec), flight.events_before)
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _cancel(self, *, force: bool) -> None:
        for flight in self._flights.values():
            ray.cancel(flight.ref, force=force)

    def _refuse_endless_waiting(self) -> None:
        """Give up if nobody runs and nobody came to run for too long; while one runs, the others just queue."""
        limit = self._resources.schedule_timeout_seconds
        if "running" in self._states.values() or not (self._ready() or self._flights):
            self._last_room = time.monotonic()
        if time.monotonic() - self._last_room > limit:
            who = ", ".join(self._flights) or self._waiting[0].id
            raise SforaError(
                f"members {who}: {waited_in_vain(self._resources)}. "
                f"Free or add nodes, then run `sfora-ray pack resume {self._run.path}`."
            )


def _landing(flight: _Flight) -> Landing:
    try:
        return Landing.model_validate(ray.get(flight.ref, timeout=_SECONDS_TO_LAND))
    except TaskCancelledError:
        return Landing()
    except RayError as error:
        return Landing(end=end_of(error))


def _told(folder: MemberFolder, end: End) -> tuple[Cause, str]:
    """Return why the last attempt ended: of an exception the worker knows the place, of a death only Ray knows."""
    ends = [event for event in events_since(folder) if event.event == "ended"]
    if end.cause == "exception" and ends:
        return ends[-1].cause, ends[-1].reason
    return end.cause, end.reason
