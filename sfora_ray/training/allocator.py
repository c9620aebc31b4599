"""How the C library of a training process on CPUs keeps its memory.

By default glibc gives large blocks back to the system and takes them anew at every step, and the kernel clears
each page again: a tenth to a quarter of a step on a CPU. These settings keep the memory; they are read when a
process starts, so they belong into its environment. Blocks on a GPU are cached by torch and need none of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
    "MALLOC_TOP_PAD_": str(2**28),
}


def allocator_settings(gpus_per_worker: float) -> Mapping[str, str]:
    """Return environment variables for a worker that is about to start; what the user has set stands."""
    if gpus_per_worker:
        return {}
    return {name: os.environ.get(name, value) for name, value in _KEEP_MEMORY.items()}


@contextmanager
def inherited(settings: Mapping[str, str]) -> Iterator[None]:
    """Let processes started within the block inherit these variables."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
