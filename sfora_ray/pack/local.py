"""The launcher that needs no Ray: each member is a process of its own on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

import torch

from sfora_ray.config.member import Cause, MemberSpec
from sfora_ray.config.pack import ResourceOptions
from sfora_ray.errors import ResourceError
from sfora_ray.folds import Moments
from sfora_ray.pack.gather import PackBlocks, join
from sfora_ray.pack.launcher import MemberState
from sfora_ray.pack.member_process import member_process, start, told_by
from sfora_ray.pack.notes import Outage, events_since, note_end, note_failure, note_unsaved
from sfora_ray.pack.pauses import Pauses
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.member_folder import MemberFolder

_SECONDS_TO_SAVE = 10.0
_SECONDS_TO_END = 3.0


@dataclass(frozen=True)
class _Flight:
    """A member under way: its process, the place it takes, and how long its book of attempts was before."""

    spec: MemberSpec
    process: BaseProcess
    slot: int
    events_before: int


class LocalMembers:
    """Members as processes, as many at a time as have CPUs and GPUs.

    A process that died without a result is started again, `resources.max_failures` times; it goes on from the
    member's checkpoint, at once, or after a pause if its storage failed.
    """

    def __init__(self, run: RunFolder, specs: Sequence[MemberSpec]) -> None:
        resources = run.manifest().config.resources
        self._run = run
        self._waiting = list(specs)
        self._slots = list(range(places(resources))) if specs else []
        self._resources = resources
        self._running: dict[str, _Flight] = {}
        self._failures: dict[str, int] = {spec.id: 0 for spec in specs}
        self._states: dict[str, MemberState] = {spec.id: "queued" for spec in specs}
        self._pauses = Pauses()
        self._outage = Outage()

    def poll(self) -> Mapping[str, MemberState]:
        """Start members that now have room; return each member's state."""
        for flight in [flight for flight in self._running.values() if not flight.process.is_alive()]:
            with self._outage.passed_over():
                self._land(flight)
        for spec in [spec for spec in self._waiting if self._pauses.is_over(spec.id)][: len(self._slots)]:
            with self._outage.passed_over():
                self._start(spec, self._slots[0])
        return dict(self._states)

    def stop(self) -> None:
        """Ask every member to save its state and leave; end the process of one that does not."""
        self._waiting.clear()
        flights = [flight for flight in self._running.values() if flight.process.pid is not None]
        for flight in flights:
            with suppress(OSError):
                self._run.member(flight.spec).ask_to_stop()
        _wait_for(flights, _SECONDS_TO_SAVE)
        for flight in flights:
            flight.process.terminate()
        _wait_for(flights, _SECONDS_TO_END)
        for flight in flights:
            flight.process.kill()
            flight.process.join()
        for flight in flights:
            self._leave_word(flight)
        self._running.clear()
        self._states |= {name: "stopped" for name, state in self._states.items() if state in ("running", "queued")}

    def gather(self, finished: Sequence[MemberSpec]) -> PackBlocks:
        """Return the blocks of these members, read from the run folder."""
        return blocks_from_folder(self._run, finished)

    def moments(self, blocks: PackBlocks) -> Moments:
        """Return the moments of the train blocks."""
        return train_moments(blocks)

    def _leave_word(self, flight: _Flight) -> None:
        """Record that a process was ended before it could save, and take back the request to stop."""
        folder = self._run.member(flight.spec)
        if flight.process.exitcode != 0:
            note_unsaved(folder, flight.events_before)
        with suppress(OSError):
            folder.stop_path.unlink(missing_ok=True)

    def _start(self, spec: MemberSpec, slot: int) -> None:
        folder = self._run.member(spec)
        folder.stop_path.unlink(missing_ok=True)
        folder.home.publish()
        process = member_process(spec, folder, _device(self._resources, slot))
        # Before it starts: an interrupt within the start must find it here.
        self._running[spec.id] = _Flight(spec, process, slot, len(folder.attempts()))
        try:
            start(process, self._resources)
        except OSError:
            del self._running[spec.id]
            raise
        self._waiting.remove(spec)
        self._slots.remove(slot)
        self._states[spec.id] = "running"

    def _land(self, flight: _Flight) -> None:
        spec, folder = flight.spec, self._run.member(flight.spec)
        flight.process.join()
        folder.home.refresh()
        result = folder.result()  # first: while it cannot be read, the member has not landed
        del self._running[spec.id]
        self._slots.append(flight.slot)
        if result is not None:
            self._states[spec.id] = result.status
        elif flight.process.exitcode == 0:
            self._states[spec.id] = "stopped"
        else:
            self._after_death(spec, folder, *_why(folder, flight))

    def _after_death(self, spec: MemberSpec, folder: MemberFolder, cause: Cause, reason: str) -> None:
        """Send the member on its way again, or record its failure if that has been done too often."""
        self._failures[spec.id] += 1
        if self._failures[spec.id] <= self._resources.max_failures:
            self._pauses.note(spec.id, cause)
            self._waiting.insert(0, spec)
            self._states[spec.id] = "queued"
        else:
            note_failure(spec, folder, cause, reason)
            self._states[spec.id] = "failed"


def _wait_for(flights: Sequence[_Flight], seconds: float) -> None:
    end = time.monotonic() + seconds
    for flight in flights:
        flight.process.join(timeout=max(0.0, end - time.monotonic()))


def _why(folder: MemberFolder, flight: _Flight) -> tuple[Cause, str]:
    """Return why a process died: what it said itself, else what its exit code tells; both stand in its folder then."""
    cause, reason = told_by(flight.process.exitcode or 0)
    note_end(folder, flight.events_before, cause, reason)
    said = [event for event in events_since(folder, flight.events_before) if event.event == "ended"]
    return (said[-1].cause, said[-1].reason) if said else (cause, reason)


def _device(resources: ResourceOptions, slot: int) -> str:
    return f"cuda:{_gpu_places(resources.gpus_per_worker)[slot]}" if resources.gpus_per_worker else "cpu"


def places(resources: ResourceOptions) -> int:
    """Return how many members fit on this machine at a time.

    Raises:
        ResourceError: not even one does, or members are data-parallel, which needs Ray.
    """
    if resources.workers_per_member > 1:
        raise ResourceError(
            f"resources.workers_per_member: --local trains a member in one process, got "
            f"{resources.workers_per_member}. Set it to 1 or leave out --local."
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if resources.cpus_per_worker > cores:
        raise ResourceError(
            f"resources.cpus_per_worker: this machine has {cores} CPUs, got {resources.cpus_per_worker}. Lower it."
        )
    fit = cores // resources.cpus_per_worker
    if resources.gpus_per_worker:
        fit = min(fit, len(_gpu_places(resources.gpus_per_worker)))
    return min(fit, resources.max_concurrent_members or fit)


def gpu_places(num_gpus: int, gpus_per_worker: float) -> list[int]:
    """Return the first GPU of each place; shares of a GPU never reach over to the next."""
    if gpus_per_worker >= 1:
        width = int(gpus_per_worker)
        return [width * place for place in range(num_gpus // width)]
    return [gpu for gpu in range(num_gpus) for _ in range(int(1 / gpus_per_worker + 1e-9))]


def _gpu_places(gpus_per_worker: float) -> list[int]:
    found = gpu_places(torch.cuda.device_count(), gpus_per_worker)
    if not found:
        raise ResourceError(
            f"resources.gpus_per_worker: this machine has {torch.cuda.device_count()} GPUs, got {gpus_per_worker:g}. "
            "Set it to 0 to train on CPUs."
        )
    return found


def blocks_from_folder(run: RunFolder, members: Sequence[MemberSpec]) -> PackBlocks:
    """Read the blocks of these members from the run folder."""
    train = [run.embeddings(spec, "train") for spec in members]
    test = [run.embeddings(spec, "test") for spec in members]
    return PackBlocks(tuple(members), join(members, train, "train"), join(members, test, "test"))


def train_moments(blocks: PackBlocks) -> Moments:
    """Return the moments of the train blocks, summed here."""
    return Moments.of(blocks.train.blocks, blocks.train.labels)
