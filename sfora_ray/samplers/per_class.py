"""``per_class``: the balanced batch of the HIST program (Lim et al., CVPR 2022).

Classes without replacement, then images without replacement within each, drawn anew at every step with no memory of
what an epoch has shown; rows are sorted by class. An epoch is as long as if every image were seen once, rounded up,
and counts images of classes too small to be drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sfora_ray.arrays import Int64
from sfora_ray.card import Card
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers.balanced import BalancedOptions, draw_images
from sfora_ray.samplers.base import Sampler


class PerClassOptions(BalancedOptions):
    """Some images of each of some classes."""

    card: ClassVar[Card] = Card(
        title="M images per class, drawn anew",
        paper="Lim, Yun, Park, Choi: HIST, CVPR 2022 (their program)",
        checked="counts of classes and images over many batches, on unequal classes and shuffled rows",
        differences="draws are named by seed, epoch and step, not by a global generator",
    )

    name: Literal["per_class"] = "per_class"

    def build(self, labels: Int64, *, coarse: Int64 | None = None, seed: int) -> PerClassSampler:  # noqa: ARG002
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Raises:
            DataError: ``batch_size`` is no multiple, or too few classes are large enough.
        """
        drawn, notes = self.drawn_classes(labels)
        return PerClassSampler(
            rows_by_class=drawn,
            batch_size=self.batch_size,
            samples_per_class=self.samples_per_class,
            steps_per_epoch=math.ceil(len(labels) / self.batch_size),
            seed=seed,
            notes=notes,
        )


@dataclass(frozen=True, eq=False)
class PerClassSampler(Sampler):
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
        return np.concatenate(
            [draw_images(generator, self.rows_by_class[label], self.samples_per_class) for label in classes]
        )
