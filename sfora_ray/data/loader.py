"""Batches on their way to the network. What a batch holds never depends on how many processes load it.

A loader process makes whole batches. Each is a function of (seed, epoch, step) alone, so workers have no
random state to share or repeat, and a member that resumes in the middle of an epoch gets the very batches it
missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sfora_ray.arrays import Int64
from sfora_ray.data.base import ImageTable
from sfora_ray.data.sampler import Sampler
from sfora_ray.data.transforms import TestTransform, TrainTransform, augmentation_generator
from sfora_ray.randomness import torch_generator

Batch = tuple[Tensor, Tensor]
"""Images uint8 ``(B, C, H, W)`` and labels int64 ``(B,)``."""


class TrainLoader:
    """Epochs of augmented batches; its loader processes stay alive from epoch to epoch.

    Args:
        table: the training split.
        sampler: built over ``table.labels``.
        transform: the augmentation.
        seed: names the streams of augmentation.
        num_workers: loader processes; 0 loads in the caller's. Changes the speed alone.
        pin_memory: copy batches to page-locked memory, for a faster way to a CUDA device.
        shard: ``(rank, world)``: only this contiguous part of a batch is loaded, augmented as in the whole.
    """

    def __init__(
        self,
        table: ImageTable,
        sampler: Sampler,
        transform: TrainTransform,
        *,
        seed: int,
        num_workers: int = 0,
        pin_memory: bool = False,
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        self._steps = _Steps()
        self._steps_per_epoch = sampler.steps_per_epoch
        batches = _TrainBatches(table, sampler, transform, seed, shard)
        self._loader = _data_loader(batches, self._steps, num_workers, pin_memory, seed)

    def epoch(self, epoch: int, *, first_step: int = 0) -> Iterator[Batch]:
        """Yield the batches ``first_step``, ``first_step + 1``, ... of an epoch; one epoch at a time."""
        self._steps.keys = [(epoch, step) for step in range(first_step, self._steps_per_epoch)]
        return iter(self._loader)


def test_batches(
    table: ImageTable, transform: TestTransform, *, batch_size: int, num_workers: int, pin_memory: bool
) -> Iterator[Batch]:
    """Yield every image of the table once, in order; the last batch may be smaller."""
    starts = _Steps([(0, start) for start in range(0, len(table), batch_size)])
    batches = _TestBatches(table, transform, batch_size)
    return iter(_data_loader(batches, starts, num_workers, pin_memory, 0))


test_batches.__test__ = False  # type: ignore[attr-defined]  # or pytest would collect it where it is imported


class _Steps:
    """The keys of the batches to load next; the loader asks anew at each epoch."""

    def __init__(self, keys: list[tuple[int, int]] | None = None) -> None:
        self.keys = keys or []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.keys)

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class _TrainBatches(Dataset[Batch]):
    table: ImageTable
    sampler: Sampler
    transform: TrainTransform
    seed: int
    shard: tuple[int, int]

    def __getitem__(self, key: tuple[int, int]) -> Batch:
        epoch, step = key
        rows = self.sampler.batch(epoch, step)
        positions = _part(len(rows), *self.shard)
        images = [
            self.transform(
                self.table.images[int(rows[position])],
                augmentation_generator(self.seed, epoch, step, position),
            )
            for position in positions
        ]
        return torch.stack(images), self._labels(rows, positions)

    def _labels(self, rows: Int64, positions: range) -> Tensor:
        return torch.from_numpy(self.table.labels[rows[positions.start : positions.stop]])


@dataclass(frozen=True)
class _TestBatches(Dataset[Batch]):
    table: ImageTable
    transform: TestTransform
    batch_size: int

    def __getitem__(self, key: tuple[int, int]) -> Batch:
        rows = range(key[1], min(key[1] + self.batch_size, len(self.table)))
        images = torch.stack([self.transform(self.table.images[row]) for row in rows])  # (B, C, H, W)
        return images, torch.from_numpy(np.array(self.table.labels[rows.start : rows.stop]))


def _part(size: int, rank: int, world: int) -> range:
    return range(size * rank // world, size * (rank + 1) // world)


def _data_loader(
    batches: Dataset[Batch], steps: _Steps, num_workers: int, pin_memory: bool, seed: int
) -> DataLoader[Batch]:
    return DataLoader(
        batches,
        batch_size=None,
        sampler=steps,
        num_workers=num_workers,
        pin_memory=pin_memory and torch.cuda.is_available(),
        # Forked children of a process with CUDA or Ray threads may hang.
        multiprocessing_context="spawn" if num_workers else None,
        persistent_workers=num_workers > 0,
        # Without its own, the loader would draw from the global generator.
        generator=torch_generator(seed, "loader"),
    )
