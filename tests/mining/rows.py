"""A small batch of unequal, shuffled classes for the tests of miners."""

from __future__ import annotations

import torch
from torch import Tensor

from sfora_ray.randomness import torch_generator

LABELS = torch.tensor([4, 1, 4, 0, 1, 4, 7, 1, 4])


def rows_of(count: int, seed: int) -> Tensor:
    """Return `(count, 4)` raw rows in float64."""
    return torch.randn(count, 4, dtype=torch.float64, generator=torch_generator(seed)) * 3
