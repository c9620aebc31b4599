"""Randomness that is passed, never global.

A generator is named by a seed and a path of words and numbers, such as ``(seed, "augment", epoch, row)``.
The same name gives the same stream on every machine, whatever else has drawn from other streams.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(seed: int, *path: str | int) -> int:
    """Return a 63-bit seed for the stream that ``seed`` and ``path`` name."""
    name = "/".join([str(int(seed)), *(str(part) for part in path)])
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") >> 1


def numpy_generator(seed: int, *path: str | int) -> np.random.Generator:
    """Return a NumPy generator (Philox, counter-based) of the named stream."""
    return np.random.Generator(np.random.Philox(key=derive_seed(seed, *path)))


def torch_generator(seed: int, *path: str | int) -> torch.Generator:
    """Return a CPU torch generator of the named stream."""
    import torch

    return torch.Generator().manual_seed(derive_seed(seed, *path))
