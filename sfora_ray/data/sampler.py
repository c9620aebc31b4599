"""Which images make a batch: a function of (seed, epoch, step), so a run resumes inside an epoch exactly.

``per_class`` is the balanced batch of the HIST program (Lim et al., CVPR 2022): classes without replacement,
then images without replacement within each, drawn anew at every step with no memory of what an epoch has
shown; rows are sorted by class. An epoch is as long as if every image were seen once, rounded up, and counts
images of classes too small to be drawn.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from pydantic import Field, PositiveInt

from sfora_ray.arrays import Int64
from sfora_ray.errors import DataError
from sfora_ray.options import Options
from sfora_ray.randomness import numpy_generator


class Sampler(Protocol):
    """Batches by number."""

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in each epoch."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, e.g. which classes are never drawn."""
        ...

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` table rows of one batch."""
        ...


class SamplerOptions(Options, ABC):
    """Options of a sampler."""

    name: str
    """Key in the sampler table."""

    batch_size: PositiveInt = 120
    """Images in a batch, over all workers of a member."""

    @abstractmethod
    def build(self, labels: Int64, *, seed: int) -> Sampler:
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Raises:
            DataError: the labels cannot fill such a batch; the message gives a setting that fits.
        """


class PerClassOptions(SamplerOptions):
    """Some images of each of some classes."""

    name: Literal["per_class"] = "per_class"
    samples_per_class: PositiveInt = 4
    """Images of each class in a batch; must divide ``batch_size``."""
    small_classes: Literal["leave_out", "upsample"] = "leave_out"
    """What becomes of classes with fewer images: never drawn, or their images repeated within the batch."""

    def build(self, labels: Int64, *, seed: int) -> PerClassSampler:
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Raises:
            DataError: ``batch_size`` is no multiple, or too few classes are large enough.
        """
        if self.batch_size % self.samples_per_class:
            raise DataError(_not_a_multiple(self.batch_size, self.samples_per_class))
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        small = [rows for rows in groups if len(rows) < self.samples_per_class]
        drawn = groups
        if self.small_classes == "leave_out":
            drawn = [rows for rows in groups if len(rows) >= self.samples_per_class]
        if len(drawn) * self.samples_per_class < self.batch_size:
            raise DataError(_too_few_classes(self, groups, len(drawn)))
        return PerClassSampler(
            rows_by_class=tuple(drawn),
            batch_size=self.batch_size,
            samples_per_class=self.samples_per_class,
            steps_per_epoch=math.ceil(len(labels) / self.batch_size),
            seed=seed,
            notes=_small_class_notes(self, small, len(drawn)),
        )


@dataclass(frozen=True, eq=False)
class PerClassSampler:
    """``batch_size / samples_per_class`` classes a batch, ``samples_per_class`` images of each.

    Attributes:
        rows_by_class: the table rows of each class that is drawn.
        batch_size: images in a batch.
        samples_per_class: images of each class.
        steps_per_epoch: number of batches in each epoch.
        seed: names the stream of draws.
        notes: which classes are left out or upsampled.
    """

    rows_by_class: tuple[Int64, ...]
    batch_size: int
    samples_per_class: int
    steps_per_epoch: int
    seed: int
    notes: tuple[str, ...]

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` rows of one batch, sorted by class."""
        generator = numpy_generator(self.seed, "per_class", epoch, step)
        num_classes = self.batch_size // self.samples_per_class
        classes = np.sort(generator.choice(len(self.rows_by_class), num_classes, replace=False))
        return np.concatenate([self._draw(generator, self.rows_by_class[label]) for label in classes])

    def _draw(self, generator: np.random.Generator, rows: Int64) -> Int64:
        shuffled = generator.permutation(rows)
        return np.resize(shuffled, self.samples_per_class)  # a small class is repeated in turn


class RandomOptions(SamplerOptions):
    """A shuffled pass over all images; the rest that fills no batch is dropped."""

    name: Literal["random"] = "random"
    batch_size: int = Field(120, ge=2)
    """Images in a batch, over all workers of a member; a batch of one would break batch normalisation."""

    def build(self, labels: Int64, *, seed: int) -> RandomSampler:
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Raises:
            DataError: there are fewer images than one batch takes.
        """
        if len(labels) < self.batch_size:
            raise DataError(
                f"sampler random: an epoch must fill one batch, got batch_size {self.batch_size} and "
                f"{len(labels)} images. Set batch_size to {len(labels)} or less."
            )
        return RandomSampler(len(labels), self.batch_size, seed)


@dataclass(frozen=True)
class RandomSampler:
    """Slices of a permutation that is drawn anew each epoch.

    Attributes:
        num_images: rows of the table.
        batch_size: images in a batch.
        seed: names the stream of permutations.
    """

    num_images: int
    batch_size: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        """Number of whole batches."""
        return self.num_images // self.batch_size

    @property
    def notes(self) -> tuple[str, ...]:
        """Say how many images each epoch drops."""
        rest = self.num_images % self.batch_size
        return (f"{rest} images, others each epoch, fill no batch and are dropped",) if rest else ()

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` rows of one batch."""
        order = numpy_generator(self.seed, "random", epoch).permutation(self.num_images)
        return order[step * self.batch_size : (step + 1) * self.batch_size].astype(np.int64)


def _not_a_multiple(batch_size: int, samples_per_class: int) -> str:
    num_classes = max(1, batch_size // samples_per_class)
    return (
        f"sampler per_class: batch_size must be a multiple of samples_per_class, got {batch_size} and "
        f"{samples_per_class} ({batch_size / samples_per_class:.2f} classes a batch). "
        f"Set batch_size to {num_classes * samples_per_class} ({num_classes} classes a batch)."
    )


def _too_few_classes(options: PerClassOptions, groups: list[Int64], num_drawn: int) -> str:
    wanted = options.batch_size // options.samples_per_class
    return (
        f"sampler per_class: {wanted} classes a batch (batch_size {options.batch_size} / samples_per_class "
        f"{options.samples_per_class}) need {wanted} classes of {options.samples_per_class} or more images, "
        f"got {num_drawn} of {len(groups)}. {_setting_that_fits(options, groups, num_drawn)}"
    )


def _setting_that_fits(options: PerClassOptions, groups: list[Int64], num_drawn: int) -> str:
    if num_drawn:
        return f"Set batch_size to {num_drawn * options.samples_per_class} or a smaller multiple."
    largest = max((len(rows) for rows in groups), default=0)
    num_largest = sum(len(rows) == largest for rows in groups)
    return (
        f"Set samples_per_class to {largest} and batch_size to {largest * num_largest} or a smaller "
        "multiple, or small_classes to 'upsample'."
    )


def _small_class_notes(options: PerClassOptions, small: list[Int64], num_drawn: int) -> tuple[str, ...]:
    if not small:
        return ()
    num_images = sum(len(rows) for rows in small)
    if options.small_classes == "upsample":
        what = f"{len(small)} classes, {num_images} images upsampled"
    else:
        what = f"{len(small)} classes, {num_images} images left out"
    return (f"{what} (fewer than {options.samples_per_class} images a class); {num_drawn} classes are drawn",)
