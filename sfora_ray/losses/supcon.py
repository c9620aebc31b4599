"""SupCon: every positive of an anchor against all other rows, as a cross entropy of cosines.

Khosla, Teterwak, Wang et al.: Supervised Contrastive Learning, NeurIPS 2020, eq. 2 (the mean over an anchor's
positives lies outside the logarithm), averaged over the anchors that have a positive.

Written here because the library gives 0 where a batch has no negative pair, though positives repel each other as
well, and leaves anchors out of the mean whose loss rounds to 0.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, TupleObjective
from sfora_ray.losses.batch_cosines import unit_rows
from sfora_ray.tuples import Pairs, Triplets


class SupCon(TupleObjective):
    """The supervised contrastive objective."""

    def __init__(self, options: SupConOptions) -> None:
        super().__init__()
        self.options = options

    def compare(self, rows: Tensor, others: Tensor, tuples: Pairs | Triplets) -> Tensor:
        """Return the scalar loss of chosen pairs; an anchor's partners are those it has a pair with."""
        assert isinstance(tuples, Pairs), "the configuration refuses a miner of triplets for a loss of pairs"
        with torch.autocast(rows.device.type, enabled=False):
            anchors = unit_rows(rows)
            partners = anchors if others is rows else unit_rows(others)
            logits = anchors @ partners.T / self.options.temperature  # (B, R)
            positive = _table(logits, tuples.anchors, tuples.positives)
            compared = positive | _table(logits, tuples.negative_anchors, tuples.negatives)
            # Not minus infinity, which would make an anchor without a partner NaN.
            scores = logits.masked_fill(~compared, torch.finfo(logits.dtype).min).log_softmax(dim=1)
            count = positive.sum(dim=1)
            of_anchor = -scores.masked_fill(~positive, 0).sum(dim=1) / count.clamp(min=1)  # (B,)
            return of_anchor.sum() / (count > 0).sum().clamp(min=1)


def _table(like: Tensor, anchors: Tensor, partners: Tensor) -> Tensor:
    table = torch.zeros_like(like, dtype=torch.bool)
    table[anchors, partners] = True
    return table


class SupConOptions(LossOptions):
    """Options of the supervised contrastive loss."""

    card: ClassVar[Card] = Card(
        title="SupCon",
        paper="Khosla et al., NeurIPS 2020, eq. 2",
        checked="reference values of the library, gradients included, and slow loops",
        differences="one view of each image; anchors without a positive are left out of the mean; no factor for a "
        "base temperature",
    )
    needs_positives: ClassVar[bool] = True
    takes_tuples: ClassVar[bool] = True

    name: Literal["supcon"] = "supcon"
    temperature: float = Field(default=0.1, gt=0)
    """Divides the cosines."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> SupCon:
        """Make the objective; it learns nothing itself."""
        del dim, num_classes, generator
        return SupCon(self)
