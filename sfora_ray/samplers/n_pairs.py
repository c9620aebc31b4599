"""``n_pairs``: two images of each of N classes that the network confuses.

Hard negative class mining of N-pairs (Sohn, NIPS 2016, section 3.2.1). For each batch some candidate classes are drawn
at random; among them classes are chosen greedily, each the one that most violates the triplet constraint with those
before it; of each chosen class two images are drawn anew from the whole data set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import PositiveInt, model_validator

from sfora_ray.arrays import Float32, Float64, Int64
from sfora_ray.card import Card
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers.balanced import rows_by_class
from sfora_ray.samplers.base import Sampler, SamplerOptions
from sfora_ray.samplers.class_mining import class_violations, select_classes

_NAME = "n_pairs"
_MOST_EXAMPLES = 8192


class NPairsSamplerOptions(SamplerOptions):
    """Two images of each of the classes that are confused most; ``batch_size`` is twice their number."""

    card: ClassVar[Card] = Card(
        title="N-pairs hard class mining",
        paper="Sohn: improved deep metric learning with multi-class N-pair loss, NIPS 2016, section 3.2.1",
        checked="a slow greedy selection in plain loops and hand examples, ties counted",
        differences="examples are embedded once, at an epoch's beginning, not before each batch; their embeddings are "
        "L2-normalised; the paper leaves the violation open",
    )

    name: Literal["n_pairs"] = "n_pairs"
    candidates: PositiveInt | None = None
    """Classes among which each batch chooses; twice as many as it takes, or all where there are fewer, if absent."""
    examples_per_class: PositiveInt = 2
    """Images of each class that are embedded before an epoch to see what is confused."""

    @property
    def images_per_class(self) -> int:
        """Return how many images of each of its classes a batch holds."""
        return 2

    @model_validator(mode="after")
    def _candidates_suffice(self) -> NPairsSamplerOptions:
        if self.batch_size % 2:
            raise ValueError(f"batch_size must be even, for a batch is made of pairs, got {self.batch_size}")
        if self.candidates is not None and self.candidates < self.batch_size // 2:
            raise ValueError(
                f"candidates must not be below the pairs of a batch ({self.batch_size // 2}, half of batch_size), "
                f"got {self.candidates}"
            )
        return self

    def build(self, labels: Int64, *, coarse: Int64 | None = None, seed: int) -> NPairsSampler:  # noqa: ARG002
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Raises:
            DataError: fewer classes have two images than candidates are drawn, or than a batch takes; or more examples
                would be compared than fit in memory.
        """
        groups = rows_by_class(labels)
        paired = tuple(rows for rows in groups if len(rows) >= 2)
        num_pairs = self.batch_size // 2
        candidates = self.candidates or max(num_pairs, min(2 * num_pairs, len(paired)))
        if len(paired) < candidates:
            raise DataError(_too_few_classes(self, candidates, len(paired), len(groups)))
        if candidates * self.examples_per_class > _MOST_EXAMPLES:
            raise DataError(
                f"sampler {_NAME}: all examples of a batch's candidates are compared, at most {_MOST_EXAMPLES}, got "
                f"{candidates} candidates of {self.examples_per_class} examples. Set candidates to "
                f"{_MOST_EXAMPLES // self.examples_per_class} or less, or examples_per_class to less."
            )
        alone = len(groups) - len(paired)
        return NPairsSampler(
            rows_by_class=paired,
            num_pairs=num_pairs,
            candidates=candidates,
            examples_per_class=self.examples_per_class,
            steps_per_epoch=max(1, len(labels) // self.batch_size),
            seed=seed,
            notes=(f"{alone} classes of a single image are never drawn",) if alone else (),
        )


@dataclass(frozen=True, eq=False)
class NPairsSampler(Sampler):
    """Pairs of confused classes, by what the network made of some examples when the epoch began.

    Attributes:
        rows_by_class: the table rows of each class of two images or more.
        num_pairs: classes in a batch.
        candidates: classes among which they are chosen.
        examples_per_class: images of a class that tell what it is confused with.
        steps_per_epoch: number of batches in each epoch.
        seed: names the streams of draws.
        notes: how many classes have no pair.
        shown: ``(n, D)`` embeddings of the examples; None as long as nobody has shown them.
        epoch: the one they were shown for.
    """

    rows_by_class: tuple[Int64, ...]
    num_pairs: int
    candidates: int
    examples_per_class: int
    steps_per_epoch: int
    seed: int
    notes: tuple[str, ...]
    shown: Float32 | None = None
    epoch: int | None = None

    def wants(self, epoch: int) -> Int64:
        """Return the rows of random examples of every class, class after class."""
        generator = numpy_generator(self.seed, _NAME, epoch)
        return np.concatenate([generator.permutation(rows)[: self.examples_per_class] for rows in self.rows_by_class])

    def informed(self, epoch: int, embeddings: Float32) -> NPairsSampler:
        """Return the sampler of an epoch, given the L2-normalised embeddings ``(n, D)`` of its examples."""
        return replace(self, shown=embeddings, epoch=epoch)

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` rows of one batch, the two images of a class side by side."""
        generator = numpy_generator(self.seed, _NAME, epoch, step)
        candidates = np.sort(generator.choice(len(self.rows_by_class), self.candidates, replace=False))
        chosen = candidates[select_classes(self._violations(epoch, candidates), self.num_pairs, generator)]
        pairs = [generator.choice(self.rows_by_class[label], 2, replace=False) for label in chosen]
        return np.concatenate(pairs)

    def _violations(self, epoch: int, candidates: Int64) -> Float64:
        assert self.shown is not None, "the sampler must be informed before an epoch"
        assert self.epoch == epoch, f"informed for epoch {self.epoch}, asked for {epoch}"
        sizes = [min(len(rows), self.examples_per_class) for rows in self.rows_by_class]
        labels = np.repeat(np.arange(len(sizes)), sizes)
        examples = np.flatnonzero(np.isin(labels, candidates))
        return class_violations(self.shown[examples], labels[examples])


def _too_few_classes(options: NPairsSamplerOptions, candidates: int, num_paired: int, num_classes: int) -> str:
    num_pairs = options.batch_size // 2
    problem = (
        f"sampler {_NAME}: {num_pairs} pairs a batch among {candidates} candidates need {candidates} classes of two or "
        f"more images, got {num_paired} of {num_classes}."
    )
    if num_paired >= num_pairs:
        return f"{problem} Set candidates to {num_paired} or less."
    if not num_paired:
        return f"{problem} Use the sampler 'random'."
    also = f" and candidates to {num_paired}" if options.candidates is not None else ""
    return f"{problem} Set batch_size to {2 * num_paired}{also} or less."
