"""Labels that several tests make, and epochs of batches."""

from __future__ import annotations

import numpy as np

from sfora_ray.arrays import Int64
from sfora_ray.samplers import Sampler


def labels_of(*counts: int) -> Int64:
    """Return shuffled labels with so many images of each class."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(0).permutation(labels).astype(np.int64)


def epoch_of(sampler: Sampler, epoch: int = 1) -> list[Int64]:
    return [sampler.batch(epoch, step) for step in range(sampler.steps_per_epoch)]
