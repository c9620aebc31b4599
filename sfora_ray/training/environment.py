"""The environment a training process must start with; what is in it is read before any of our code runs.

On CPUs glibc by default gives large blocks back to the system and takes them anew at every step, and the kernel
clears each page again: a tenth to a quarter of a step. The settings keep the memory. Blocks on a GPU are cached by
torch and need none of it; there, cuBLAS wants a fixed workspace before it computes the same bits twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sfora_ray.config.pack import ResourceOptions

_KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
    "MALLOC_TOP_PAD_": str(2**28),
}
_FIXED_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def worker_environment(resources: ResourceOptions) -> dict[str, str]:
    """Return environment variables for a worker that is about to start; what the user has set stands."""
    wanted = _FIXED_WORKSPACE if resources.gpus_per_worker else _KEEP_MEMORY
    return {name: os.environ.get(name, value) for name, value in wanted.items()}


@contextmanager
def inherited(variables: Mapping[str, str]) -> Iterator[None]:
    """Let processes started within the block inherit these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
