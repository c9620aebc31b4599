"""Metrics of single queries from the ranks of their right answers.

With ``R`` right answers at ranks ``k_1 < ... < k_R``: Recall@K asks ``k_1 <= K``; average precision is the
mean of ``i / k_i``; MAP@R (Musgrave, Belongie, Lim, "A Metric Learning Reality Check", ECCV 2020) sums only
the ``k_i <= R`` and still divides by ``R``; R-precision is the share of ``k_i <= R``.

``mean_average_precision`` is over the whole ranking: the mean over queries of the precision at each right answer,
divided by their number. The program of Liao, Tsiligkaridis, Kulis (ICML 2023) computes its mAP so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from sfora_ray.arrays import Float64, Int64

RECALLS = (1, 2, 4, 8)
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class QueryMetrics:
    """Metrics query by query.

    Attributes:
        rows: ``(Q,)`` row numbers of the queries, ascending.
        best_rank: ``(Q,)`` rank of the first right answer, from 1.
        map_at_r: ``(Q,)``.
        average_precision: ``(Q,)``.
        r_precision: ``(Q,)``.
    """

    rows: Int64
    best_rank: Int64
    map_at_r: Float64
    average_precision: Float64
    r_precision: Float64

    @classmethod
    def of_ranks(cls, rows: Int64, counts: Int64, ranks: Int64) -> QueryMetrics:
        """Reduce ``(P,)`` ranks, ascending within each of the queries, which have ``counts`` of them."""
        owners = np.repeat(np.arange(len(counts)), counts)
        firsts = np.cumsum(counts) - counts
        precision = (1 + np.arange(len(ranks)) - firsts[owners]) / ranks
        within = ranks <= counts[owners]
        sums = [np.bincount(owners, weight, len(counts)) for weight in (precision * within, precision, within)]
        return cls(rows, ranks[firsts], *(total / counts for total in sums))

    @classmethod
    def misses(cls, rows: Int64) -> QueryMetrics:
        """Return queries that can find nothing: all metrics 0."""
        zeros = np.zeros(len(rows))
        return cls(rows, np.full(len(rows), NEVER), zeros, zeros, zeros)

    @classmethod
    def join(cls, parts: Sequence[QueryMetrics]) -> QueryMetrics:
        """Return the queries of all parts, by row number."""
        joined = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)]
        order = np.argsort(joined[0], kind="stable")
        return cls(*(values[order] for values in joined))

    def recall_at(self, k: int) -> Float64:
        """Return ``(Q,)`` 1.0 where a right answer is among the first ``k``, else 0.0."""
        return (self.best_rank <= k).astype(np.float64)

    @property
    def recall_at_1(self) -> Float64:
        """``(Q,)`` hits at the first neighbour."""
        return self.recall_at(1)

    def means(self) -> dict[str, float]:
        """Return the mean of every metric over the queries, under the names used everywhere."""
        recalls = {f"recall_at_{k}": float(self.recall_at(k).mean()) for k in RECALLS}
        return recalls | {
            "map_at_r": float(self.map_at_r.mean()),
            "mean_average_precision": float(self.average_precision.mean()),
            "r_precision": float(self.r_precision.mean()),
        }
