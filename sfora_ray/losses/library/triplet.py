"""Triplet margin loss, from pytorch-metric-learning.

Weinberger, Saul, JMLR 2009; Schroff, Kalenichenko, Philbin: FaceNet, CVPR 2015, eq. 2. Distances are Euclidean,
not squared, of L2-normalised rows; the mean is over the triplets that violate the margin. ``swap``: Balntas, Riba,
Ponsa, Mikolajczyk, BMVC 2016. All triplets of the batch count, unless a miner chooses (semi-hard, batch-hard).
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions
from sfora_ray.losses.library.common import ExactDistance, LibraryPairs
from sfora_ray.tuples import Pairs, Triplets, triplets_of


class Triplet(LibraryPairs):
    """The triplet margin objective; pairs that share an anchor are joined to triplets."""

    def __init__(self, options: TripletOptions) -> None:
        super().__init__(
            TripletMarginLoss(
                margin=options.margin,
                swap=options.swap,
                smooth_loss=options.smooth,
                triplets_per_anchor="all",
                distance=ExactDistance(),
                reducer=AvgNonZeroReducer(collect_stats=False),
                embedding_regularizer=None,
                collect_stats=False,
            )
        )
        self.swap = options.swap

    def compare(self, rows: Tensor, others: Tensor, tuples: Pairs | Triplets) -> Tensor:
        """Return the scalar loss of chosen tuples."""
        if not self.swap or others is rows:
            return super().compare(rows, others, tuples)
        # The library reads the distance of positive and negative from the table of rows by others, where it is not.
        chosen, shift = _joined(tuples), len(rows)
        both = torch.cat([rows, others])  # (B + R, D)
        return super().compare(both, both, Triplets(chosen.anchors, chosen.positives + shift, chosen.negatives + shift))

    def indices(self, tuples: Pairs | Triplets) -> tuple[Tensor, ...]:
        """Return triplets as the library takes them."""
        chosen = _joined(tuples)
        return chosen.anchors, chosen.positives, chosen.negatives


def _joined(tuples: Pairs | Triplets) -> Triplets:
    return tuples if isinstance(tuples, Triplets) else triplets_of(tuples)


class TripletOptions(LossOptions):
    """Options of the triplet margin loss."""

    card: ClassVar[Card] = Card(
        title="Triplet margin",
        paper="Schroff, Kalenichenko, Philbin, CVPR 2015, eq. 2",
        checked="reference values of the library, gradients included, and slow loops",
        differences="distances not squared, mean over violating triplets (as the library)",
    )
    needs_positives: ClassVar[bool] = True
    takes_tuples: ClassVar[bool] = True

    name: Literal["triplet"] = "triplet"
    margin: float = Field(default=0.05, ge=0)
    """How much farther than the positive the negative must be; normalised rows are at most 2 apart."""
    smooth: bool = False
    """A soft plus in place of the hinge; then every triplet counts."""
    swap: bool = False
    """Measure the negative from the positive where it is nearer to it than to the anchor."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Triplet:
        """Make the objective; it learns nothing itself."""
        del dim, num_classes, generator
        return Triplet(self)
