"""Miners of pairs: by their neighbourhood, by fixed bounds, by rank.

They follow the miners of pytorch-metric-learning, and are written here because those cannot choose among given
candidates, except one that keeps them as state between calls.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.mining.base import Miner, MinerOptions
from sfora_ray.mining.geometry import candidates_or_all, unit_cosines, unit_distances
from sfora_ray.tuples import Pairs


class MultiSimilarityMiner(Miner):
    """Positives less similar than the most similar negative, negatives more than the least similar positive.

    Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning,
    CVPR 2019. An anchor without a negative keeps no positives, and the other way round.
    """

    def __init__(self, options: MultiSimilarityMinerOptions) -> None:
        super().__init__()
        self.epsilon = options.epsilon

    def forward(self, embeddings: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Pairs:
        """Return the pairs within ``epsilon`` of their anchor's hardest pair of the other kind."""
        pairs = candidates_or_all(labels, candidates)
        cosines = unit_cosines(embeddings)
        alike, unlike = cosines[pairs.anchors, pairs.positives], cosines[pairs.negative_anchors, pairs.negatives]
        lowest = cosines.new_full((len(labels),), torch.inf).scatter_reduce_(0, pairs.anchors, alike, "amin")
        highest = cosines.new_full((len(labels),), -torch.inf)
        highest.scatter_reduce_(0, pairs.negative_anchors, unlike, "amax")
        return _kept(
            pairs,
            alike - self.epsilon < highest[pairs.anchors],
            unlike + self.epsilon > lowest[pairs.negative_anchors],
        )


class PairMarginMiner(Miner):
    """Positives farther apart than one bound, negatives nearer than another."""

    def __init__(self, options: PairMarginMinerOptions) -> None:
        super().__init__()
        self.options = options

    def forward(self, embeddings: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Pairs:
        """Return the pairs beyond their bounds, by Euclidean distance of normalised rows."""
        pairs = candidates_or_all(labels, candidates)
        distances = unit_distances(embeddings)
        return _kept(
            pairs,
            distances[pairs.anchors, pairs.positives] > self.options.positive_above,
            distances[pairs.negative_anchors, pairs.negatives] < self.options.negative_below,
        )


class HdcMiner(Miner):
    """The hardest fraction of the positive pairs and of the negative pairs.

    Yuan, Yang, Zhang: Hard-Aware Deeply Cascaded Embedding, ICCV 2017. Pairs are ordered: both directions count.
    """

    def __init__(self, options: HdcOptions) -> None:
        super().__init__()
        self.fraction = options.fraction

    def forward(self, embeddings: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Pairs:
        """Return the farthest positives and the nearest negatives, hardest first, the count rounded up.

        Of pairs as hard as each other those that come first among the candidates go first.
        """
        pairs = candidates_or_all(labels, candidates)
        distances = unit_distances(embeddings)
        return _kept(
            pairs,
            self._hardest(-distances[pairs.anchors, pairs.positives]),
            self._hardest(distances[pairs.negative_anchors, pairs.negatives]),
        )

    def _hardest(self, ease: Tensor) -> Tensor:
        # 0.55 * 100 is a little above 55 in binary; that must not round up to 56.
        count = max(1, math.ceil(self.fraction * len(ease) - 1e-9))
        return ease.argsort(stable=True)[:count]


def _kept(pairs: Pairs, positive: Tensor, negative: Tensor) -> Pairs:
    """Select positive and negative pairs by masks or by positions."""
    return Pairs(
        pairs.anchors[positive],
        pairs.positives[positive],
        pairs.negative_anchors[negative],
        pairs.negatives[negative],
    )


class MultiSimilarityMinerOptions(MinerOptions):
    """Options of multi-similarity's miner."""

    card: ClassVar[Card] = Card(
        title="Multi-similarity miner",
        paper="Wang, Han, Huang, Dong, Scott, CVPR 2019",
        checked="recorded pairs of the library, and slow loops",
    )
    gives: ClassVar[str] = "pairs"

    name: Literal["multi_similarity"] = "multi_similarity"
    epsilon: float = Field(default=0.1, ge=0)
    """How much easier than the hardest pair of the other kind a pair may be, as a cosine."""

    def build(self) -> MultiSimilarityMiner:
        """Make the miner."""
        return MultiSimilarityMiner(self)


class PairMarginMinerOptions(MinerOptions):
    """Options of the miner with fixed bounds."""

    card: ClassVar[Card] = Card(
        title="Pair-margin miner",
        paper="none; the metric-training recipe of pytorch-metric-learning",
        checked="recorded pairs of the library, and slow loops",
        differences="distances by subtraction, so that duplicates are exactly 0 apart and never mined above 0",
    )
    gives: ClassVar[str] = "pairs"

    name: Literal["pair_margin"] = "pair_margin"
    positive_above: float = Field(default=0.0, ge=0, le=2)
    """Positives farther apart than this are kept; normalised rows are at most 2 apart."""
    negative_below: float = Field(default=1.4, gt=0, le=2)
    """Negatives nearer than this are kept."""

    def build(self) -> PairMarginMiner:
        """Make the miner."""
        return PairMarginMiner(self)


class HdcOptions(MinerOptions):
    """Options of the miner of a cascade's stage."""

    card: ClassVar[Card] = Card(
        title="HDC miner",
        paper="Yuan, Yang, Zhang, ICCV 2017",
        checked="recorded pairs of a cascade of the library's miners, and slow loops",
        differences="ties go to the earlier pair",
    )
    gives: ClassVar[str] = "pairs"

    name: Literal["hdc"] = "hdc"
    fraction: float = Field(default=0.5, gt=0, le=1)
    """Share of the candidates that is kept, of positives and negatives each."""

    def build(self) -> HdcMiner:
        """Make the miner."""
        return HdcMiner(self)
