"""Batches on their way to the network. What a batch holds never depends on how many processes load it.

A loader process makes whole batches. Each is a function of its rows and of (seed, epoch, step) alone, so workers
have no random state to share or repeat, and a member that resumes in the middle of an epoch gets the very batches it
missed.

An image that cannot be read stops the batch, or another of its class stands in for it. Loader processes report such
images with the batch, so that one process, that of the caller, counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sfora_ray.arrays import Int64
from sfora_ray.data.base import ImageTable
from sfora_ray.data.replacement import Draw, Reading, read_row
from sfora_ray.data.transforms import TestTransform, TrainTransform, augmentation_generator
from sfora_ray.data.unreadable import UnreadableImage
from sfora_ray.errors import DataError
from sfora_ray.randomness import torch_generator

Batch = tuple[Tensor, Tensor]
"""Images uint8 ``(B, C, H, W)`` and labels int64 ``(B,)``."""

OnUnreadable = Callable[[UnreadableImage], object]
"""Told of an image, each time anew, for which another stands in; it may raise."""


class Batches(Protocol):
    """Which rows make each batch of an epoch."""

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches."""
        ...

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` table rows of one batch."""
        ...


_Key = tuple[int, int, Int64]
"""Epoch, step, and the rows of the batch; or, for a pass in order, the rows alone."""

_Loaded = tuple[Tensor | None, Tensor, tuple[UnreadableImage, ...]]
"""As it comes from a loader process: no images where one was unreadable and nothing could stand in."""


class TrainLoader:
    """Epochs of augmented batches; its loader processes stay alive from epoch to epoch.

    Args:
        table: the training split.
        transform: the augmentation.
        seed: names the streams of augmentation.
        num_workers: loader processes; 0 loads in the caller's. Changes the speed alone.
        pin_memory: copy batches to page-locked memory, for a faster way to a CUDA device.
        shard: ``(rank, world)``: only this contiguous part of a batch is loaded, augmented as in the whole.
        on_unreadable: told of images that others stand in for; without it an unreadable image is an error.
    """

    def __init__(
        self,
        table: ImageTable,
        transform: TrainTransform,
        *,
        seed: int,
        num_workers: int = 0,
        pin_memory: bool = False,
        shard: tuple[int, int] = (0, 1),
        on_unreadable: OnUnreadable | None = None,
    ) -> None:
        self._steps = _Steps()
        self._on_unreadable = on_unreadable
        batches = _TrainBatches(table, transform, seed, shard, on_unreadable is not None)
        self._loader = _data_loader(batches, self._steps, num_workers, pin_memory, seed)

    def epoch(self, batches: Batches, epoch: int, *, first_step: int = 0) -> Iterator[Batch]:
        """Yield the batches ``first_step``, ``first_step + 1``, ... of an epoch; one epoch at a time.

        Raises:
            DataError: an image cannot be read, and none stands in for it.
        """
        steps = range(first_step, batches.steps_per_epoch)
        self._steps.keys = ((epoch, step, batches.batch(epoch, step)) for step in steps)
        return _told(iter(self._loader), self._on_unreadable)


def test_batches(
    table: ImageTable,
    transform: TestTransform,
    *,
    batch_size: int,
    num_workers: int,
    pin_memory: bool,
    on_unreadable: OnUnreadable | None = None,  # noqa: PT028 - it is no test
) -> Iterator[Batch]:
    """Yield every image of the table once, in order; the last batch may be smaller.

    Args:
        table: any split.
        transform: the preparation.
        batch_size: images in a batch.
        num_workers: loader processes.
        pin_memory: copy batches to page-locked memory.
        on_unreadable: told of images that others stand in for, the same ones for every member; without it an
            unreadable image is an error, as it must be where members are scored.

    Raises:
        DataError: an image cannot be read, and none stands in for it.
    """
    starts = range(0, len(table), batch_size)
    steps = _Steps(
        [(0, step, np.arange(start, min(start + batch_size, len(table)))) for step, start in enumerate(starts)]
    )
    batches = _TestBatches(table, transform, on_unreadable is not None)
    return _told(iter(_data_loader(batches, steps, num_workers, pin_memory, 0)), on_unreadable)


test_batches.__test__ = False  # type: ignore[attr-defined]  # or pytest would collect it where it is imported


def _told(batches: Iterator[_Loaded], on_unreadable: OnUnreadable | None) -> Iterator[Batch]:
    for images, labels, unreadable in batches:
        if on_unreadable is not None:
            for image in unreadable:
                on_unreadable(image)
        if images is None:
            raise DataError(unreadable[0].reason)
        yield images, labels


class _Steps:
    """The keys of the batches to load next; the loader asks anew at each epoch."""

    def __init__(self, keys: Iterable[_Key] = ()) -> None:
        self.keys = keys

    def __iter__(self) -> Iterator[_Key]:
        return iter(self.keys)


@dataclass(frozen=True)
class _TrainBatches(Dataset[_Loaded]):
    table: ImageTable
    transform: TrainTransform
    seed: int
    shard: tuple[int, int]
    replaces: bool

    def __getitem__(self, key: _Key) -> _Loaded:
        epoch, step, rows = key
        positions = _part(len(rows), *self.shard)
        images: list[Tensor] = []
        unreadable: list[UnreadableImage] = []
        for position in positions:
            draw = Draw(self.seed, (epoch, step, position), rows) if self.replaces else None
            reading = read_row(self.table, int(rows[position]), draw)
            unreadable += reading.unreadable
            if reading.pixels is None:
                return None, self._labels(rows, positions), reading.unreadable
            images.append(self.transform(reading.pixels, augmentation_generator(self.seed, epoch, step, position)))
        return torch.stack(images), self._labels(rows, positions), tuple(unreadable)

    def _labels(self, rows: Int64, positions: range) -> Tensor:
        return torch.from_numpy(self.table.labels[rows[positions.start : positions.stop]])


@dataclass(frozen=True)
class _TestBatches(Dataset[_Loaded]):
    table: ImageTable
    transform: TestTransform
    replaces: bool

    def __getitem__(self, key: _Key) -> _Loaded:
        rows = key[2]
        labels = torch.from_numpy(self.table.labels[rows])
        images: list[Tensor] = []
        unreadable: list[UnreadableImage] = []
        for row in rows.tolist():
            reading = self._read(row)
            unreadable += reading.unreadable
            if reading.pixels is None:
                return None, labels, reading.unreadable
            images.append(self.transform(reading.pixels))
        return torch.stack(images), labels, tuple(unreadable)  # (B, C, H, W)

    def _read(self, row: int) -> Reading:
        # The stream has no seed: all members who lack an image see the same one in its place.
        draw = Draw(0, (self.table.ids[row],), np.zeros(0, np.int64)) if self.replaces else None
        return read_row(self.table, row, draw)


def _part(size: int, rank: int, world: int) -> range:
    return range(size * rank // world, size * (rank + 1) // world)


def _data_loader(
    batches: Dataset[_Loaded], steps: _Steps, num_workers: int, pin_memory: bool, seed: int
) -> DataLoader[_Loaded]:
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
