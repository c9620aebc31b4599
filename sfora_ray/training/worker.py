"""Which of a member's workers this process is, and the device it computes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from sfora_ray.config.pack import PackConfig


def _stays() -> bool:
    return False


@dataclass(frozen=True)
class Worker:
    """One process of a member's training; the first one writes the member's files.

    Attributes:
        rank: its place among the member's workers.
        world_size: how many they are.
        device: where it computes.
        leaving: whether its machine is about to be taken away; every worker asks at the same steps.
    """

    rank: int
    world_size: int
    device: torch.device
    leaving: Callable[[], bool] = _stays

    @classmethod
    def alone(cls, device: torch.device | None = None) -> Worker:
        """Return the only worker of a member, on the GPU that this process sees, else on the CPU."""
        return cls(0, 1, device or seen_device())

    @property
    def is_first(self) -> bool:
        """Return whether this worker writes the member's files."""
        return self.rank == 0


def seen_device() -> torch.device:
    """Return the first GPU that is really there, else the CPU; scheduled GPUs without hardware do not count."""
    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def device_name(device: torch.device) -> str:
    """Return the device in words, for results and reports."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


@contextmanager
def torch_settings(config: PackConfig) -> Iterator[None]:
    """Set threads and determinism for one member, and put back what was there.

    The number of threads changes the order of sums and so the last bits: it comes from the config, not the machine.
    """
    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic  # a module whose one attribute its type does not tell
    filling = memory.fill_uninitialized_memory
    benchmark = torch.backends.cudnn.benchmark
    torch.set_num_threads(config.resources.cpus_per_worker)
    torch.use_deterministic_algorithms(config.training.deterministic)
    # Deterministic mode would also fill every new tensor, which costs a tenth of a step and changes no result.
    memory.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = not config.training.deterministic
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)
        memory.fill_uninitialized_memory = filling
        torch.backends.cudnn.benchmark = benchmark
