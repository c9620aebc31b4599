"""Retrieval on coarse classes: is what was found at least of the right kind?

The embeddings are ranked once as ever, and a row of the query's coarse class is a right answer, whether or not it is
of the query's own class. A coarse class may hold a third of all rows, too many to look up the rank of each: rows are
sorted instead. What is sorted are integers that hold the similarity, the row number and whether the row is right, so
that equal similarities go to the lower row number, as in ``score``, and no second array has to follow the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sfora_ray.arrays import Float32, Float64, Int64
from sfora_ray.retrieval.positives import PositiveIndex
from sfora_ray.retrieval.similarity import similarity_blocks

_ALL_BUT_SIGN = 0x7FFFFFFF


@dataclass(frozen=True)
class CoarseScores:
    """Means over the queries that share their coarse class with another row.

    Attributes:
        recall_at_1: share whose nearest row is of their coarse class.
        map_at_r: with R rows of the query's coarse class beside it.
    """

    recall_at_1: float
    map_at_r: float

    def metrics(self) -> dict[str, float]:
        """Return the metrics by the names used everywhere."""
        return {"coarse_recall_at_1": self.recall_at_1, "coarse_map_at_r": self.map_at_r}


def score_coarse(rows: Float32, labels: Int64, *, count_misses: bool, device: str) -> CoarseScores:
    """Score ``(N, D)`` unit rows, each against all others, on ``(N,)`` coarse labels.

    Args:
        rows: of unit length; at least one must have a partner.
        labels: coarse class of each row.
        count_misses: a query without partner is a miss, not left out.
        device: torch device of the products.
    """
    counts = PositiveIndex(labels).counts(labels, within=True)
    chosen = np.flatnonzero(counts > 0)
    kinds = torch.from_numpy(labels).to(device)  # (N,)
    hits, average = np.zeros(len(chosen)), np.zeros(len(chosen))
    for places, block in similarity_blocks(rows, chosen, rows, within=True, device=device):
        queries = chosen[places]
        wanted = kinds[torch.from_numpy(queries).to(device)]  # (B,)
        right = _sorted_hits(block, kinds == wanted[:, None], int(counts[queries].max()))
        hits[places], average[places] = _of_hits(right, torch.from_numpy(counts[queries]).to(device))
    num_queries = len(labels) if count_misses else len(chosen)
    return CoarseScores(float(hits.sum() / num_queries), float(average.sum() / num_queries))


def _sorted_hits(block: Tensor, right: Tensor, depth: int) -> Tensor:
    """Return ``(B, depth)`` whether the first rows by descending similarity are right, of ``(B, N)`` of both."""
    keys = _falling(block)  # (B, N)
    keys <<= 32
    keys |= torch.arange(block.shape[1], device=block.device) << 1
    keys |= right
    if keys.device.type == "cpu":
        ordered = torch.from_numpy(np.sort(keys.numpy(), axis=1))  # several times faster than torch's
    else:
        ordered = torch.sort(keys, dim=1).values
    return (ordered[:, :depth] & 1).bool()


def _falling(values: Tensor) -> Tensor:
    """Return int64 numbers of 32 bits in the reverse order of float32 ``values``, equal where those are equal."""
    bits = (values + 0.0).view(torch.int32)  # adding 0 makes the two zeros one
    # The bits of negative floats fall as the floats rise: all but the sign are turned round.
    flipped = bits >> 31
    flipped &= _ALL_BUT_SIGN
    flipped ^= bits
    return flipped.bitwise_not_().long()


def _of_hits(right: Tensor, counts: Tensor) -> tuple[Float64, Float64]:
    """Return ``(B,)`` hits at the first neighbour and ``(B,)`` MAP@R from ``(B, R)`` sorted hits."""
    ranks = torch.arange(1, right.shape[1] + 1, device=right.device)  # (R,)
    right = right & (ranks <= counts[:, None])
    precision = right.cumsum(1, dtype=torch.float64) / ranks
    average = (precision * right).sum(1) / counts
    return right[:, 0].double().cpu().numpy(), average.cpu().numpy()
