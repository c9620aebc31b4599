"""Triplet margin loss: the negative must be farther from the anchor than the positive, by a margin.

Weinberger, Saul, JMLR 2009; Schroff, Kalenichenko, Philbin: FaceNet, CVPR 2015, eq. 2. Distances are Euclidean,
not squared, of L2-normalised rows; the mean is over the triplets that violate the margin. ``swap``: Balntas, Riba,
Ponsa, Mikolajczyk, BMVC 2016. All triplets of the batch count, unless a miner chooses (semi-hard, batch-hard).

Written here because ``swap`` needs the distances of positives from negatives, which the library takes from the table
of anchors by partners: right within one batch only.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, TupleObjective
from sfora_ray.losses.batch_cosines import unit_rows
from sfora_ray.losses.distances import euclidean
from sfora_ray.tuples import Pairs, Triplets, triplets_of


class Triplet(TupleObjective):
    """The triplet margin objective; pairs that share an anchor are joined to triplets."""

    def __init__(self, options: TripletOptions) -> None:
        super().__init__()
        self.options = options

    def compare(self, rows: Tensor, others: Tensor, tuples: Pairs | Triplets) -> Tensor:
        """Return the scalar loss of chosen tuples."""
        chosen = tuples if isinstance(tuples, Triplets) else triplets_of(tuples)
        with torch.autocast(rows.device.type, enabled=False):
            anchors = unit_rows(rows)
            partners = anchors if others is rows else unit_rows(others)
            distances = euclidean(anchors, partners)  # (B, R)
            near, far = distances[chosen.anchors, chosen.positives], distances[chosen.anchors, chosen.negatives]
            if self.options.swap:
                far = torch.minimum(far, _from_positives(partners, chosen))
            violations = near - far + self.options.margin
            terms = F.softplus(violations) if self.options.smooth else F.relu(violations)
            return terms.sum() / (terms > 0).sum().clamp(min=1)


def _from_positives(partners: Tensor, chosen: Triplets) -> Tensor:
    """Return how far each triplet's negative is from its positive, ``(T,)``."""
    positives, which = torch.unique(chosen.positives, return_inverse=True)
    return euclidean(partners[positives], partners)[which, chosen.negatives]


class TripletOptions(LossOptions):
    """Options of the triplet margin loss."""

    card: ClassVar[Card] = Card(
        title="Triplet margin",
        paper="Schroff, Kalenichenko, Philbin, CVPR 2015, eq. 2",
        checked="reference values of the library, gradients included, and slow loops",
        differences="distances not squared, mean over violating triplets, margin 0.05 (all as the library; the paper: "
        "0.2 of squared distances)",
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
