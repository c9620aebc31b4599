"""What samplers of several images a class share: which classes are drawn, and what to say where too few are."""

from __future__ import annotations

from abc import ABC
from typing import Literal

import numpy as np
from pydantic import PositiveInt

from sfora_ray.arrays import Int64
from sfora_ray.errors import DataError
from sfora_ray.samplers.base import SamplerOptions


class BalancedOptions(SamplerOptions, ABC):
    """As many images of each class of a batch."""

    samples_per_class: PositiveInt = 4
    """Images of each class in a batch; must divide ``batch_size``."""
    small_classes: Literal["leave_out", "upsample"] = "leave_out"
    """What becomes of classes with fewer images: never drawn, or their images repeated within the batch."""

    @property
    def images_per_class(self) -> int:
        """Return how many images of each of its classes a batch holds."""
        return self.samples_per_class

    def drawn_classes(self, labels: Int64) -> tuple[tuple[Int64, ...], tuple[str, ...]]:
        """Return the rows of each class that can be drawn, and notes on those that are too small.

        Raises:
            DataError: ``batch_size`` is no multiple, or too few classes are large enough.
        """
        if self.batch_size % self.samples_per_class:
            raise DataError(_not_a_multiple(self))
        groups = rows_by_class(labels)
        large = tuple(rows for rows in groups if len(rows) >= self.samples_per_class)
        drawn = groups if self.small_classes == "upsample" else large
        if len(drawn) * self.samples_per_class < self.batch_size:
            raise DataError(_too_few_classes(self, groups, len(drawn)))
        small = [rows for rows in groups if len(rows) < self.samples_per_class]
        return drawn, _small_class_notes(self, small, len(drawn))


def rows_by_class(labels: Int64) -> tuple[Int64, ...]:
    """Return the ascending rows of each class of ``labels`` ``(N,)``, in the order of the labels."""
    order = np.argsort(labels, kind="stable")
    starts = np.unique(labels[order], return_index=True)[1]
    return tuple(rows for rows in np.split(order, starts[1:]) if len(rows))


def draw_images(generator: np.random.Generator, rows: Int64, number: int) -> Int64:
    """Return ``number`` of a class's rows in random order; where it has fewer, they are repeated in turn."""
    return np.resize(generator.permutation(rows), number)


def _not_a_multiple(options: BalancedOptions) -> str:
    num_classes = max(1, options.batch_size // options.samples_per_class)
    return (
        f"sampler {options.name}: batch_size must be a multiple of samples_per_class, got {options.batch_size} and "
        f"{options.samples_per_class} ({options.batch_size / options.samples_per_class:.2f} classes a batch). "
        f"Set batch_size to {num_classes * options.samples_per_class} ({num_classes} classes a batch)."
    )


def _too_few_classes(options: BalancedOptions, groups: tuple[Int64, ...], num_drawn: int) -> str:
    wanted = options.batch_size // options.samples_per_class
    return (
        f"sampler {options.name}: {wanted} classes a batch (batch_size {options.batch_size} / samples_per_class "
        f"{options.samples_per_class}) need {wanted} classes of {options.samples_per_class} or more images, "
        f"got {num_drawn} of {len(groups)}. {_setting_that_fits(options, groups, num_drawn)}"
    )


def _setting_that_fits(options: BalancedOptions, groups: tuple[Int64, ...], num_drawn: int) -> str:
    if num_drawn:
        return f"Set batch_size to {num_drawn * options.samples_per_class} or a smaller multiple."
    largest = max((len(rows) for rows in groups), default=0)
    num_largest = sum(len(rows) == largest for rows in groups)
    return (
        f"Set samples_per_class to {largest} and batch_size to {largest * num_largest} or a smaller "
        "multiple, or small_classes to 'upsample'."
    )


def _small_class_notes(options: BalancedOptions, small: list[Int64], num_drawn: int) -> tuple[str, ...]:
    if not small:
        return ()
    num_images = sum(len(rows) for rows in small)
    if options.small_classes == "upsample":
        what = f"{len(small)} classes, {num_images} images upsampled"
    else:
        what = f"{len(small)} classes, {num_images} images left out"
    return (f"{what} (fewer than {options.samples_per_class} images a class); {num_drawn} classes are drawn",)
