"""``random``: every image once an epoch, in shuffled order, whatever its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sfora_ray.arrays import Int64
from sfora_ray.card import Card
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers.base import Sampler, SamplerOptions


class RandomOptions(SamplerOptions):
    """A shuffled pass over all images; the rest that fills no batch is dropped."""

    card: ClassVar[Card] = Card(
        title="Shuffled images",
        paper="none: the usual pass over all images, as in the programs of HIST and Proxy Anchor",
        checked="each image once an epoch, counted",
    )

    name: Literal["random"] = "random"

    def build(self, labels: Int64, *, coarse: Int64 | None = None, seed: int) -> RandomSampler:  # noqa: ARG002
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Raises:
            DataError: there are fewer images than one batch takes.
        """
        if len(labels) < self.batch_size:
            raise DataError(
                f"sampler random: an epoch must fill one batch, got batch_size {self.batch_size} and "
                f"{len(labels)} images. Set batch_size to {len(labels)} or less."
            )
        rest = len(labels) % self.batch_size
        return RandomSampler(
            num_images=len(labels),
            batch_size=self.batch_size,
            steps_per_epoch=len(labels) // self.batch_size,
            seed=seed,
            notes=(f"{rest} images, others each epoch, fill no batch and are dropped",) if rest else (),
        )


@dataclass(frozen=True)
class RandomSampler(Sampler):
    """Slices of a permutation that is drawn anew each epoch.

    Attributes:
        num_images: rows of the table.
        batch_size: images in a batch.
        steps_per_epoch: number of whole batches.
        seed: names the stream of permutations.
        notes: how many images each epoch drops.
    """

    num_images: int
    batch_size: int
    steps_per_epoch: int
    seed: int
    notes: tuple[str, ...]

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` rows of one batch."""
        order = numpy_generator(self.seed, "random", epoch).permutation(self.num_images)
        return order[step * self.batch_size : (step + 1) * self.batch_size].astype(np.int64)
