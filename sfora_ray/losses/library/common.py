"""What the objectives that come from the library share.

Traps of the library that are closed here:

* Half-precision rows would turn its own weights into half precision: rows are widened before they reach it.
* A batch with one positive and one negative pair counts as a batch without any: a lone pair is given twice,
  which no mean of these losses notices.
* Above 25 rows its distances come from a matrix product, which puts exact duplicates at up to 7e-4 in float32;
  where means are taken over what is not zero, they would count: distances are ours (``losses/distances.py``).
"""

from __future__ import annotations

import torch
from pytorch_metric_learning.distances import LpDistance
from torch import Tensor, nn

from sfora_ray.losses.base import TupleObjective
from sfora_ray.losses.distances import euclidean
from sfora_ray.precision import widened
from sfora_ray.tuples import Pairs, Triplets


class ExactDistance(LpDistance):  # type: ignore[misc]  # the library has no types
    """Euclidean distances of L2-normalised rows, exactly 0 between equal ones."""

    def __init__(self, power: int = 1) -> None:
        super().__init__(normalize_embeddings=True, p=2, power=power, collect_stats=False)

    def compute_mat(self, query_emb: Tensor, ref_emb: Tensor) -> Tensor:
        """Return ``(B, R)`` distances of normalised rows."""
        return euclidean(query_emb, ref_emb)


class LibraryPairs(TupleObjective):
    """A loss of the library that is given the pairs to compare."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def compare(self, rows: Tensor, others: Tensor, tuples: Pairs | Triplets) -> Tensor:
        """Return the scalar loss of chosen tuples, in float32 at least; 0 with a gradient of 0 if there are none."""
        with torch.autocast(rows.device.type, enabled=False):
            anchors = widened(rows)
            partners = anchors if others is rows else widened(others)
            loss: Tensor = self.loss(anchors, indices_tuple=self.indices(tuples), ref_emb=partners)
            # Without a pair the library's zero hangs on the anchors only; the partners need their gradient too.
            return loss if others is rows else loss + 0 * partners.sum()

    def indices(self, tuples: Pairs | Triplets) -> tuple[Tensor, ...]:
        """Return positive and negative pairs as the library takes them."""
        assert isinstance(tuples, Pairs), "the configuration refuses a miner of triplets for a loss of pairs"
        indices = (tuples.anchors, tuples.positives, tuples.negative_anchors, tuples.negatives)
        lone = max(len(tuples.anchors), len(tuples.negatives)) == 1
        return tuple(index.repeat(2) for index in indices) if lone else indices
