"""Objectives of pairs, from pytorch-metric-learning: contrastive and multi-similarity.

Contrastive: Hadsell, Chopra, LeCun: Dimensionality Reduction by Learning an Invariant Mapping, CVPR 2006, but with
hinges that are not squared, each averaged over the pairs that violate their margin.

Multi-similarity: Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting for Deep Metric
Learning, CVPR 2019, averaged over all anchors, also over those without a pair.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field, model_validator
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import ContrastiveLoss, MultiSimilarityLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions
from sfora_ray.losses.batch_cosines import refuse_reversed_margins
from sfora_ray.losses.library.common import ExactDistance, LibraryPairs


class ContrastiveOptions(LossOptions):
    """Options of the contrastive loss."""

    card: ClassVar[Card] = Card(
        title="Contrastive",
        paper="Hadsell, Chopra, LeCun, CVPR 2006",
        checked="reference values of the library, gradients included, and slow loops",
        differences="hinges not squared, each averaged over violating pairs (as the library); exact duplicates are "
        "exactly 0 apart in any batch, unless 'distance: cosine'",
    )
    needs_positives: ClassVar[bool] = True
    takes_tuples: ClassVar[bool] = True

    name: Literal["contrastive"] = "contrastive"
    distance: Literal["euclidean", "cosine"] = "euclidean"
    """What margins are measured in: Euclidean distance of L2-normalised rows, or their cosine."""
    positive_margin: float = Field(default=0.0, ge=-1, le=2)
    """Positives farther apart (``cosine``: less similar) than this are pulled together."""
    negative_margin: float = Field(default=1.0, ge=-1, le=2)
    """Negatives nearer (``cosine``: more similar) than this are pushed apart."""

    @model_validator(mode="after")
    def _margins_are_in_order(self) -> ContrastiveOptions:
        positive, negative = self.positive_margin, self.negative_margin
        if self.distance == "cosine":
            refuse_reversed_margins(positive=positive, negative=negative)
        elif positive > negative:
            raise ValueError(
                "with distance 'euclidean' positive_margin must not be above negative_margin, "
                f"got {positive:g} and {negative:g}"
            )
        return self

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> LibraryPairs:
        """Make the objective; it learns nothing itself."""
        del dim, num_classes, generator
        distance = ExactDistance() if self.distance == "euclidean" else CosineSimilarity(collect_stats=False)
        return LibraryPairs(
            ContrastiveLoss(
                pos_margin=self.positive_margin,
                neg_margin=self.negative_margin,
                distance=distance,
                reducer=AvgNonZeroReducer(collect_stats=False),
                embedding_regularizer=None,
                collect_stats=False,
            )
        )


class MultiSimilarityOptions(LossOptions):
    """Options of the multi-similarity loss."""

    card: ClassVar[Card] = Card(
        title="Multi-similarity",
        paper="Wang, Han, Huang, Dong, Scott, CVPR 2019",
        checked="reference values of the library, with and without its miner, gradients included, and slow loops",
        differences="mines only where a miner is chosen; the authors' program always mines, with epsilon 0.1, and "
        "leaves positives of cosine 1 out; base 0.5 and beta 50 are the library's (the paper: 1 and 50, the authors' "
        "program: 0.5 and 40)",
    )
    needs_positives: ClassVar[bool] = True
    takes_tuples: ClassVar[bool] = True

    name: Literal["multi_similarity"] = "multi_similarity"
    alpha: float = Field(default=2.0, gt=0)
    """Scale of the positives."""
    beta: float = Field(default=50.0, gt=0)
    """Scale of the negatives."""
    base: float = Field(default=0.5, ge=-1, le=1)
    """The cosine both are measured from (the paper's lambda)."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> LibraryPairs:
        """Make the objective; it learns nothing itself."""
        del dim, num_classes, generator
        return LibraryPairs(
            MultiSimilarityLoss(
                alpha=self.alpha,
                beta=self.beta,
                base=self.base,
                distance=CosineSimilarity(collect_stats=False),
                reducer=MeanReducer(collect_stats=False),
                embedding_regularizer=None,
                collect_stats=False,
            )
        )
