"""The launcher that needs no Ray: each member is a process of its own on this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import ResourceOptions
from sfora_ray.errors import ResourceError
from sfora_ray.folds import Moments
from sfora_ray.pack.gather import PackBlocks, join
from sfora_ray.pack.launcher import MemberState
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.boundary import failed, member_result
from sfora_ray.training.environment import inherited, worker_environment
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.output import output_to
from sfora_ray.training.worker import Worker


class LocalMembers:
    """Members as processes, as many at a time as have CPUs and GPUs."""

    def __init__(self, run: RunFolder, specs: Sequence[MemberSpec]) -> None:
        resources = run.manifest().config.resources
        self._run = run
        self._specs = tuple(specs)
        self._waiting = list(specs)
        self._slots = list(range(places(resources))) if specs else []
        self._resources = resources
        self._running: dict[str, tuple[BaseProcess, int]] = {}

    def poll(self) -> Mapping[str, MemberState]:
        """Start members that now have room; return each member's state."""
        self._collect()
        while self._waiting and self._slots:
            self._start(self._waiting.pop(0), self._slots.pop(0))
        return {spec.id: self._state(spec) for spec in self._specs}

    def stop(self) -> None:
        """Stop every member's process."""
        self._waiting.clear()
        for process, _ in self._running.values():
            process.terminate()
        for process, _ in self._running.values():
            process.join(timeout=10)
            if process.is_alive():
                process.kill()
                process.join()
        self._running.clear()

    def gather(self, finished: Sequence[MemberSpec]) -> PackBlocks:
        """Return the blocks of these members, read from the run folder."""
        return blocks_from_folder(self._run, finished)

    def moments(self, blocks: PackBlocks) -> Moments:
        """Return the moments of the train blocks."""
        return train_moments(blocks)

    def _start(self, spec: MemberSpec, slot: int) -> None:
        device = (
            f"cuda:{_gpu_places(self._resources.gpus_per_worker)[slot]}" if self._resources.gpus_per_worker else "cpu"
        )
        arguments = (spec.model_dump(mode="json"), str(self._run.member(spec).path), device)
        process = multiprocessing.get_context("spawn").Process(target=_train_here, args=arguments, name=spec.id)
        with inherited(worker_environment(self._resources)):
            process.start()
        self._running[spec.id] = (process, slot)

    def _collect(self) -> None:
        for spec in self._specs:
            process, slot = self._running.get(spec.id, (None, 0))
            if process is None or process.is_alive():
                continue
            process.join()
            del self._running[spec.id]
            self._slots.append(slot)
            if self._run.member(spec).result() is None:
                reason = f"its process ended with exit code {process.exitcode} and left no result"
                self._run.member(spec).write_result(failed(spec, reason))

    def _state(self, spec: MemberSpec) -> MemberState:
        if spec.id in self._running:
            return "running"
        if any(spec.id == waiting.id for waiting in self._waiting):
            return "queued"
        result = self._run.member(spec).result()
        return "failed" if result is None else result.status


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


def _train_here(spec: dict[str, Any], path: str, device: str) -> None:
    member = MemberSpec.model_validate(spec)
    folder = Path(path)
    with output_to(MemberFolder(folder).log_path):
        here = torch.device(device)
        if here.type == "cuda":
            torch.cuda.set_device(here)
        member_result(member, folder, Worker.alone(here))
