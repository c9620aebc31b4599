"""``per_class_exhaustive``: balanced batches that do not repeat an image of a class before the class is used up.

The sampler of the contextual similarity program (Liao et al., its 224 x 224 setting). Classes come in blocks: a block
is as many whole batches as all classes can fill without a class twice, drawn anew for every block. A class gives its
images in a random order, ``samples_per_class`` at each visit; where fewer are left than a visit takes, these are put
back and a new order begins. Each epoch begins with all images unused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sfora_ray.arrays import Int64
from sfora_ray.card import Card
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers.balanced import BalancedOptions
from sfora_ray.samplers.base import Sampler


class ExhaustiveOptions(BalancedOptions):
    """Some images of each of some classes, none again before its class is used up."""

    card: ClassVar[Card] = Card(
        title="M images per class, without repeats",
        paper="Liao, Tsiligkaridis, Kulis: contextual similarity, arXiv 2210.01908 (their program, 224 x 224)",
        checked="a slow record of each class's unused images, kept batch by batch on unequal classes and shuffled rows",
        differences="a block is as many classes as fit, which is the program's fixed 96 at its own settings; "
        "an epoch may end inside a block (Cars: 125 batches, 126 there); classes too small are left out, not an error",
    )

    name: Literal["per_class_exhaustive"] = "per_class_exhaustive"

    def build(self, labels: Int64, *, coarse: Int64 | None = None, seed: int) -> ExhaustiveSampler:  # noqa: ARG002
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Raises:
            DataError: ``batch_size`` is no multiple, or too few classes are large enough.
        """
        drawn, notes = self.drawn_classes(labels)
        return ExhaustiveSampler(
            rows_by_class=drawn,
            classes_per_batch=self.batch_size // self.samples_per_class,
            samples_per_class=self.samples_per_class,
            steps_per_epoch=max(1, len(labels) // self.batch_size),
            seed=seed,
            notes=notes,
        )


@dataclass(frozen=True, eq=False)
class ExhaustiveSampler(Sampler):
    """Batches cut from blocks of classes; how often an epoch has visited a class tells which of its images are next.

    Attributes:
        rows_by_class: the table rows of each class that is drawn.
        classes_per_batch: classes in a batch.
        samples_per_class: images of each class.
        steps_per_epoch: number of batches in each epoch.
        seed: names the streams of draws.
        notes: which classes are left out or upsampled.
    """

    rows_by_class: tuple[Int64, ...]
    classes_per_batch: int
    samples_per_class: int
    steps_per_epoch: int
    seed: int
    notes: tuple[str, ...]

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` rows of one batch, the images of a class side by side."""
        batches_per_block = len(self.rows_by_class) // self.classes_per_batch
        block, place = divmod(step, batches_per_block)
        drawn = self._blocks(epoch, block + 1, batches_per_block * self.classes_per_batch)  # (blocks, classes)
        classes = drawn[block, place * self.classes_per_batch :][: self.classes_per_batch]
        visits = np.bincount(drawn[:block].ravel(), minlength=len(self.rows_by_class))
        return np.concatenate([self._images(epoch, int(label), int(visits[label])) for label in classes])

    def _blocks(self, epoch: int, number: int, size: int) -> Int64:
        generator = numpy_generator(self.seed, "per_class_exhaustive", epoch)
        return np.stack([generator.permutation(len(self.rows_by_class))[:size] for _ in range(number)])

    def _images(self, epoch: int, label: int, visit: int) -> Int64:
        rows = self.rows_by_class[label]
        visits_per_order = max(1, len(rows) // self.samples_per_class)
        order, place = divmod(visit, visits_per_order)
        generator = numpy_generator(self.seed, "per_class_exhaustive", epoch, label, order)
        shuffled = np.resize(generator.permutation(rows), max(len(rows), self.samples_per_class))
        return shuffled[place * self.samples_per_class :][: self.samples_per_class]
