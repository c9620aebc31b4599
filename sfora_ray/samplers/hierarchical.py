"""``hierarchical``: batches from few coarse classes, so that the other classes of a batch are hard ones.

FastAP (Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019), with the numbers of the programs that
adopted it (pytorch-metric-learning, ROADMAP, contextual similarity): two coarse classes share a batch half and half.
With ``draw: tuples`` an epoch shows every combination of coarse classes equally often; with ``by_images`` a coarse
class is drawn the more often the more images it has, which is the aim of the contextual program's own variant.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveInt

from sfora_ray.arrays import Int64
from sfora_ray.card import Card
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers.balanced import draw_images, rows_by_class
from sfora_ray.samplers.base import Sampler, SamplerOptions

_NAME = "hierarchical"
_LONG_EPOCH = 4
"""An epoch that draws more than so many times the images there are is told."""

Groups = tuple[tuple[Int64, ...], ...]
"""The rows of each class of each coarse class."""


class HierarchicalOptions(SamplerOptions):
    """Some images of each of some classes of a few coarse classes."""

    card: ClassVar[Card] = Card(
        title="Hierarchical batches of few coarse classes",
        paper="Cakir, He, Xia, Kulis, Sclaroff: FastAP, CVPR 2019",
        checked="counts of combinations, coarse classes, classes and images, on unequal sizes and shuffled rows",
        differences="images of small classes are repeated in turn, not drawn with replacement; coarse classes too "
        "small for their share are left out, not shown short; by_images draws each batch alone, where the contextual "
        "program pairs off a fixed number of half batches",
    )

    name: Literal["hierarchical"] = "hierarchical"
    samples_per_class: PositiveInt = 4
    """Images of each class in a batch; those of a smaller class are repeated within the batch."""
    super_classes: int = Field(2, ge=2)
    """Coarse classes in a batch; times ``samples_per_class`` they must divide ``batch_size``."""
    batches_per_tuple: PositiveInt = 10
    """An epoch has so many batches for each combination of coarse classes."""
    draw: Literal["tuples", "by_images"] = "tuples"
    """Each combination of coarse classes equally often, or coarse classes as often as they have images."""

    @property
    def images_per_class(self) -> int:
        """Return how many images of each of its classes a batch holds."""
        return self.samples_per_class

    def build(self, labels: Int64, *, coarse: Int64 | None = None, seed: int) -> HierarchicalSampler:
        """Return the sampler over the rows of ``labels`` ``(N,)`` and their ``coarse`` classes ``(N,)``.

        Raises:
            DataError: there are no coarse classes, ``batch_size`` is no multiple, or too few classes are there.
        """
        if coarse is None:
            raise DataError(
                f"sampler {_NAME}: the data set must have coarse classes, got none. Name them in its options where "
                "it takes them, or use the sampler 'per_class'."
            )
        unit = self.super_classes * self.samples_per_class
        if self.batch_size % unit:
            raise DataError(_not_a_multiple(self, unit))
        classes_each = self.batch_size // unit
        groups = _groups(labels, coarse)
        large = tuple(classes for classes in groups if len(classes) >= classes_each)
        if len(large) < self.super_classes:
            raise DataError(_too_few(self, groups, classes_each, len(large)))
        return HierarchicalSampler(
            groups=large,
            options=self,
            steps_per_epoch=math.comb(len(large), self.super_classes) * self.batches_per_tuple,
            seed=seed,
            notes=(*_notes(self, groups, classes_each), *_long_epoch_notes(self, len(labels), len(large))),
        )


@dataclass(frozen=True, eq=False)
class HierarchicalSampler(Sampler):
    """The same number of classes from each of a few coarse classes.

    Attributes:
        groups: the table rows of each class of each coarse class that is drawn.
        options: how a batch is made up.
        steps_per_epoch: number of batches in each epoch.
        seed: names the streams of draws.
        notes: which coarse classes are left out, which classes are upsampled, and how long a long epoch is.
    """

    groups: Groups
    options: HierarchicalOptions
    steps_per_epoch: int
    seed: int
    notes: tuple[str, ...]

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` rows of one batch, those of a coarse class side by side, and of a class within."""
        generator = numpy_generator(self.seed, _NAME, epoch, step)
        options = self.options
        number = options.batch_size // options.super_classes // options.samples_per_class
        drawn: list[Int64] = []
        for group in self._super_classes(generator, epoch, step):
            classes = self.groups[group]
            chosen = np.sort(generator.choice(len(classes), number, replace=False))
            drawn += [draw_images(generator, classes[label], options.samples_per_class) for label in chosen]
        return np.concatenate(drawn)

    def _super_classes(self, generator: np.random.Generator, epoch: int, step: int) -> tuple[int, ...]:
        together = self.options.super_classes
        if self.options.draw == "by_images":
            num_images = np.array([sum(map(len, classes)) for classes in self.groups])
            shares = num_images / num_images.sum()
            return tuple(sorted(generator.choice(len(shares), together, replace=False, p=shares).tolist()))
        order = numpy_generator(self.seed, _NAME, epoch).permutation(self.steps_per_epoch)
        combination = int(order[step]) // self.options.batches_per_tuple
        combinations = itertools.combinations(range(len(self.groups)), together)
        return next(itertools.islice(combinations, combination, None))


def _groups(labels: Int64, coarse: Int64) -> Groups:
    return tuple(tuple(rows[positions] for positions in rows_by_class(labels[rows])) for rows in rows_by_class(coarse))


def _not_a_multiple(options: HierarchicalOptions, unit: int) -> str:
    return (
        f"sampler {_NAME}: batch_size must be a multiple of super_classes times samples_per_class ({unit}), got "
        f"{options.batch_size}. Set batch_size to {max(1, options.batch_size // unit) * unit}."
    )


def _too_few(options: HierarchicalOptions, groups: Groups, classes_each: int, num_large: int) -> str:
    problem = (
        f"sampler {_NAME}: a batch needs {options.super_classes} coarse classes of {classes_each} or more classes "
        f"(batch_size {options.batch_size} / super_classes {options.super_classes} / samples_per_class "
        f"{options.samples_per_class}), got {num_large} of {len(groups)}."
    )
    sizes = sorted((len(classes) for classes in groups), reverse=True)
    if len(sizes) < 2:
        return f"{problem} Use the sampler 'per_class'."
    together = min(options.super_classes, len(sizes))
    fitting = sizes[together - 1] * together * options.samples_per_class
    also = f"super_classes to {together} and " if together < options.super_classes else ""
    return f"{problem} Set {also}batch_size to {fitting} or a smaller multiple."


def _notes(options: HierarchicalOptions, groups: Groups, classes_each: int) -> tuple[str, ...]:
    short = [classes for classes in groups if len(classes) < classes_each]
    small = [
        rows
        for classes in groups
        for rows in classes
        if len(classes) >= classes_each and len(rows) < options.samples_per_class
    ]
    left_out = f"{len(short)} coarse classes with fewer than {classes_each} classes left out"
    upsampled = (
        f"{len(small)} classes, {sum(map(len, small))} images upsampled (fewer than {options.samples_per_class} "
        "images a class)"
    )
    return (*([left_out] if short else []), *([upsampled] if small else []))


def _long_epoch_notes(options: HierarchicalOptions, num_images: int, num_groups: int) -> tuple[str, ...]:
    combinations = math.comb(num_groups, options.super_classes)
    drawn = combinations * options.batches_per_tuple * options.batch_size
    if drawn <= _LONG_EPOCH * num_images:
        return ()
    return (
        f"an epoch draws {drawn} images, {drawn / num_images:.1f} times the {num_images} there are: {combinations} "
        f"combinations of coarse classes, batches_per_tuple {options.batches_per_tuple}",
    )
