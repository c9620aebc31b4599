"""``mining_weighted``: images are drawn as often as a miner finds them in tuples worth a gradient.

Before each epoch some images are embedded and mined together. An image's weight is how often it occurs in the mined
tuples, divided by the largest such count; where nothing was mined all images looked at weigh the same. Images not
looked at weigh nothing. Batches are drawn with replacement by these weights: an image may come twice in a batch, and
no epoch is sure to show any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from sfora_ray.arrays import Float32, Float64, Int64
from sfora_ray.card import Card
from sfora_ray.errors import DataError
from sfora_ray.mining import MINERS, MinerOptions, MultiSimilarityMinerOptions
from sfora_ray.options import one_of
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers.balanced import rows_by_class
from sfora_ray.samplers.base import Sampler, SamplerOptions
from sfora_ray.tuples import Pairs, Triplets

_NAME = "mining_weighted"
_LEAST_CLASSES = 8

if TYPE_CHECKING:
    SubsetMiner = MinerOptions
else:
    # All semi-hard triplets of some thousand images would fill no memory.
    SubsetMiner = one_of({name: options for name, options in MINERS.items() if name != "semi_hard"})


class MiningWeightedOptions(SamplerOptions):
    """Images by how often they are mined, with replacement."""

    card: ClassVar[Card] = Card(
        title="Mining-weighted sampling",
        paper="none: the mining-weights recipe of pytorch-metric-learning",
        checked="the library's own weights of the same tuples; a slow count of tuples; frequencies of many draws",
        differences="the subset is drawn anew and mined again before each epoch, class by class so that it has "
        "positives",
    )

    name: Literal["mining_weighted"] = "mining_weighted"
    subset: int = Field(default=2048, ge=2, le=8192)
    """At most so many images are looked at before an epoch; all their pairs are compared at once, which bounds it."""
    miner: SubsetMiner = MultiSimilarityMinerOptions()
    """Finds the tuples that are counted."""

    def build(self, labels: Int64, *, coarse: Int64 | None = None, seed: int) -> MiningWeightedSampler:  # noqa: ARG002
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Raises:
            DataError: a batch takes more images than are looked at.
        """
        looked_at = min(self.subset, len(labels))
        if looked_at < self.batch_size:
            raise DataError(
                f"sampler {_NAME}: a batch must not be larger than the subset it is drawn from, got batch_size "
                f"{self.batch_size}, subset {self.subset} and {len(labels)} images. Set batch_size to {looked_at} or "
                "less."
            )
        return MiningWeightedSampler(
            labels=labels,
            options=self,
            steps_per_epoch=len(labels) // self.batch_size,
            seed=seed,
            notes=(f"{looked_at} of {len(labels)} images are looked at, others each epoch",)
            if looked_at < len(labels)
            else (),
        )


@dataclass(frozen=True, eq=False)
class MiningWeightedSampler(Sampler):
    """Independent weighted draws.

    Attributes:
        labels: ``(N,)`` class of each table row.
        options: the sizes and the miner.
        steps_per_epoch: number of batches in each epoch.
        seed: names the streams of draws.
        notes: how much of the table an epoch looks at.
        weights: ``(N,)`` weight of each row in 0..1; None as long as nothing was mined.
        epoch: the one they were mined for.
    """

    labels: Int64
    options: MiningWeightedOptions
    steps_per_epoch: int
    seed: int
    notes: tuple[str, ...]
    weights: Float64 | None = None
    epoch: int | None = None

    def wants(self, epoch: int) -> Int64:
        """Return the rows of random classes, cut off where the subset is full.

        Classes are whole unless one of them would take more than an eighth of the subset: what exceeds it comes only
        when every class has had its turn, so that there are negatives to find.
        """
        generator = numpy_generator(self.seed, _NAME, epoch)
        groups = rows_by_class(self.labels)
        rows = [generator.permutation(groups[label]) for label in generator.permutation(len(groups))]
        share = math.ceil(self.options.subset / _LEAST_CLASSES)
        turns = np.concatenate([np.arange(len(of_class)) // share for of_class in rows])
        return np.concatenate(rows)[np.argsort(turns, kind="stable")][: self.options.subset]

    def informed(self, epoch: int, embeddings: Float32) -> MiningWeightedSampler:
        """Return the sampler of an epoch, given the L2-normalised embeddings ``(n, D)`` of its subset."""
        rows = self.wants(epoch)
        with torch.no_grad():
            mined = self.options.miner.build()(torch.from_numpy(embeddings), torch.from_numpy(self.labels[rows]))
        weights = np.zeros(len(self.labels))
        weights[rows] = occurrence_weights(mined, len(rows))
        return replace(self, weights=weights, epoch=epoch)

    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` rows of one batch."""
        assert self.weights is not None, "the sampler must be informed before an epoch"
        assert self.epoch == epoch, f"informed for epoch {self.epoch}, asked for {epoch}"
        generator = numpy_generator(self.seed, _NAME, epoch, step)
        chances = self.weights / self.weights.sum()
        return generator.choice(len(chances), self.options.batch_size, p=chances).astype(np.int64)


def occurrence_weights(tuples: Pairs | Triplets, number: int) -> Float64:
    """Return ``(number,)`` how often each row is in the tuples, over the largest count; all 1 where there are none."""
    places = torch.cat([getattr(tuples, field.name) for field in fields(tuples)])
    counts = np.bincount(places.numpy(), minlength=number)
    if not counts.any():
        return np.ones(number)
    return np.asarray(counts / counts.max(), np.float64)
