"""Retrieval on coarse classes: is what was found at least of the right kind?

The embeddings are ranked once as ever, and a row of the query's coarse class is a right answer, whether or not it is
of the query's own class. A coarse class may hold a third of all rows, too many to look up the rank of each: rows are
sorted instead, and as MAP@R ends at rank R, so does the work. The order, ties included, is that of ``score``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sfora_ray.arrays import Float32, Float64, Int64
from sfora_ray.retrieval.positives import PositiveIndex
from sfora_ray.retrieval.similarity import similarity_blocks


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
        hits[places], average[places] = _of_block(block, kinds, queries, counts[queries])
    num_queries = len(labels) if count_misses else len(chosen)
    return CoarseScores(float(hits.sum() / num_queries), float(average.sum() / num_queries))


def _of_block(block: Tensor, kinds: Tensor, queries: Int64, counts: Int64) -> tuple[Float64, Float64]:
    """Return ``(B,)`` hits at the first neighbour and ``(B,)`` MAP@R of one block of similarities ``(B, N)``."""
    wanted = kinds[torch.from_numpy(queries).to(block.device)]  # (B,)
    within = torch.from_numpy(counts).to(block.device)  # (B,)
    ranks = torch.arange(1, int(counts.max()) + 1, device=block.device)  # (R,)
    order = torch.sort(block, dim=1, descending=True, stable=True).indices[:, : len(ranks)]  # (B, R)
    right = (kinds[order] == wanted[:, None]) & (ranks <= within[:, None])  # (B, R)
    precision = right.cumsum(1, dtype=torch.float64) / ranks
    average = (precision * right).sum(1) / within
    return right[:, 0].double().cpu().numpy(), average.cpu().numpy()
