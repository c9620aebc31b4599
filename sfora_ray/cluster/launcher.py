"""The launcher of a cluster: never more members under way than fit, so that none spins for want of room."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray import ObjectRef
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sfora_ray.cluster.backend import collective_backend
from sfora_ray.cluster.capacity import members_that_fit, waited_in_vain
from sfora_ray.cluster.gather import gather_blocks, sum_moments
from sfora_ray.cluster.member import MemberTask, last_line, run_member
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.folds import Moments
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.launcher import MemberState
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.boundary import failed

_SECONDS_TO_STOP = 20.0


@dataclass(frozen=True)
class _Flight:
    """A member under way and its task."""

    spec: MemberSpec
    ref: ObjectRef[dict[str, Any]]


class ClusterMembers:
    """Members as Ray tasks that each hold a Train run."""

    def __init__(self, run: RunFolder, specs: Sequence[MemberSpec]) -> None:
        self._run = run
        self._resources = run.manifest().config.resources
        self._backend = collective_backend(self._resources)
        self._waiting = list(specs)
        self._flights: dict[str, _Flight] = {}
        self._states: dict[str, MemberState] = {spec.id: "queued" for spec in specs}
        self._last_room = time.monotonic()

    def poll(self) -> Mapping[str, MemberState]:
        """Collect what has ended, start what now fits, and give up on what cannot be scheduled.

        Raises:
            SforaError: a member waited longer than the schedule time-out; the message names what is missing.
        """
        self._collect()
        room = members_that_fit(self._resources) - len(self._flights)
        while self._waiting and room > 0:
            self._send(self._waiting.pop(0))
            room -= 1
        self._refuse_endless_waiting()
        return dict(self._states)

    def stop(self) -> None:
        """Cancel every member and wait until each task has ended; Train then frees its workers."""
        self._waiting.clear()
        refs = [flight.ref for flight in self._flights.values()]
        for ref in refs:
            ray.cancel(ref)
        if refs:
            ray.wait(refs, num_returns=len(refs), timeout=_SECONDS_TO_STOP)
        self._flights.clear()

    def gather(self, finished: Sequence[MemberSpec]) -> PackBlocks:
        """Return the blocks of these members by way of the object store."""
        return gather_blocks(self._run, finished)

    def moments(self, blocks: PackBlocks) -> Moments:
        """Return the moments of the train blocks, summed by tasks over rows."""
        return sum_moments(blocks.train)

    def _send(self, spec: MemberSpec) -> None:
        folder = self._run.member(spec)
        folder.progress_path.unlink(missing_ok=True)
        order = MemberTask(
            spec=spec,
            folder=folder.path.absolute(),
            working_dir=Path.cwd(),
            backend=self._backend,
            attempt=str(time.time_ns()),
        )
        # The Train controller lives on its caller's node: the driver's, which is not one that comes and goes.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        ref = run_member.options(scheduling_strategy=here).remote(order.model_dump(mode="json"))
        self._flights[spec.id] = _Flight(spec, ref)
        self._states[spec.id] = "starting"

    def _collect(self) -> None:
        for flight in list(self._flights.values()):
            if self._run.member(flight.spec).progress() is not None:
                self._states[flight.spec.id] = "running"
            ready, _ = ray.wait([flight.ref], timeout=0)
            if ready:
                del self._flights[flight.spec.id]
                self._states[flight.spec.id] = self._land(flight).status
                self._last_room = time.monotonic()

    def _land(self, flight: _Flight) -> MemberResult:
        try:
            result = MemberResult.model_validate(ray.get(flight.ref, timeout=60))
        except ray.exceptions.RayError as error:
            result = failed(flight.spec, last_line(error))
        self._run.member(flight.spec).write_result(result)
        return result

    def _refuse_endless_waiting(self) -> None:
        """Give up if nobody runs and nobody came to run for too long; while one runs, the others just queue."""
        limit = self._resources.schedule_timeout_seconds
        if "running" in self._states.values() or not (self._waiting or self._flights):
            self._last_room = time.monotonic()
        if time.monotonic() - self._last_room > limit:
            who = ", ".join(self._flights) or self._waiting[0].id
            raise SforaError(
                f"members {who}: {waited_in_vain(self._resources)}. "
                f"Free or add nodes, then run `sfora-ray pack resume {self._run.path}`."
            )
