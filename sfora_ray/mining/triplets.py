"""Miners of triplets: semi-hard and batch-hard, by Euclidean distance of normalised rows."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.mining.base import Miner, MinerOptions
from sfora_ray.mining.geometry import candidates_or_all, unit_distances
from sfora_ray.tuples import Pairs, Triplets, triplets_of


class SemiHardMiner(Miner):
    """Triplets whose negative is farther than the positive, but by no more than a margin.

    Schroff, Kalenichenko, Philbin: FaceNet, CVPR 2015, eq. 4. All such triplets are kept, not one for each pair.
    """

    def __init__(self, options: SemiHardOptions) -> None:
        super().__init__()
        self.margin = options.margin

    def forward(self, embeddings: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Triplets:
        """Return the triplets with ``0 < d(a, n) - d(a, p) <= margin``."""
        triplets = triplets_of(candidates_or_all(labels, candidates))
        distances = unit_distances(embeddings)
        gap = distances[triplets.anchors, triplets.negatives] - distances[triplets.anchors, triplets.positives]
        kept = (gap > 0) & (gap <= self.margin)
        return Triplets(triplets.anchors[kept], triplets.positives[kept], triplets.negatives[kept])


class BatchHardMiner(Miner):
    """For each anchor its farthest positive with its nearest negative; ties go to the lower row.

    Hermans, Beyer, Leibe: In Defense of the Triplet Loss for Person Re-Identification, 2017, eq. 5.
    """

    def forward(self, embeddings: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Triplets:
        """Return at most one triplet for each row; rows without a positive or a negative give none."""
        pairs = candidates_or_all(labels, candidates)
        distances = unit_distances(embeddings)
        nearness = _hardest(-distances, pairs.anchors, pairs.positives)
        distance = _hardest(distances, pairs.negative_anchors, pairs.negatives)
        (anchors,) = (nearness.values.isfinite() & distance.values.isfinite()).nonzero(as_tuple=True)
        return Triplets(anchors, nearness.indices[anchors], distance.indices[anchors])


def _hardest(ease: Tensor, anchors: Tensor, partners: Tensor) -> torch.return_types.min:
    """Return each row's least ease among its pairs and whose it is, infinite where it has none; ``(B,)`` each."""
    among = torch.full_like(ease, torch.inf)
    among[anchors, partners] = ease[anchors, partners]
    return among.min(dim=1)


class SemiHardOptions(MinerOptions):
    """Options of the semi-hard miner."""

    card: ClassVar[Card] = Card(
        title="Semi-hard triplet miner",
        paper="Schroff, Kalenichenko, Philbin, CVPR 2015, eq. 4",
        checked="recorded triplets of the library, and slow loops",
        differences="all semi-hard triplets of the batch, as the library, no choice of one for each positive pair; "
        "distances not squared, so that the paper's 0.2 bounds another gap",
    )
    gives: ClassVar[str] = "triplets"

    name: Literal["semi_hard"] = "semi_hard"
    margin: float = Field(default=0.2, gt=0)
    """How much farther than the positive the negative may be."""

    def build(self) -> SemiHardMiner:
        """Make the miner."""
        return SemiHardMiner(self)


class BatchHardOptions(MinerOptions):
    """Options of the batch-hard miner: none."""

    card: ClassVar[Card] = Card(
        title="Batch-hard triplet miner",
        paper="Hermans, Beyer, Leibe, 2017, eq. 5",
        checked="the library's miner on random batches, and slow loops",
    )
    gives: ClassVar[str] = "triplets"

    name: Literal["batch_hard"] = "batch_hard"

    def build(self) -> BatchHardMiner:
        """Make the miner."""
        return BatchHardMiner()
