"""Exact retrieval metrics of embeddings, within one set or of queries against a gallery.

The query itself is removed by row number, never by its place in the list. Queries without a partner are left
out and counted (as in pytorch-metric-learning), or are misses (as in the HIST and Proxy Anchor programs).
Ranking is by float32 cosine, descending, then by row number; see ``similarity`` for equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfora_ray.arrays import Float, Float32, Int64
from sfora_ray.errors import DataError
from sfora_ray.retrieval.clusters import kmeans_labels, normalized_mutual_information
from sfora_ray.retrieval.coarse import CoarseScores, score_coarse
from sfora_ray.retrieval.metrics import QueryMetrics
from sfora_ray.retrieval.positives import PositiveIndex
from sfora_ray.retrieval.ranks import Method, choose_method, positive_ranks
from sfora_ray.retrieval.rows import matching_labels, unit_rows
from sfora_ray.retrieval.similarity import similarity_blocks

Singletons = Literal["skip", "miss"]


@dataclass(frozen=True)
class RetrievalScores:
    """Metrics of one set of embeddings.

    Attributes:
        nmi: None where it was not asked for.
        num_queries: queries in the means.
        num_singletons: queries without a partner, left out or counted as misses.
        per_query: the metrics before averaging.
        coarse: on coarse classes; None where no coarse labels were given.
    """

    recall_at_1: float
    recall_at_2: float
    recall_at_4: float
    recall_at_8: float
    map_at_r: float
    mean_average_precision: float
    r_precision: float
    nmi: float | None
    num_queries: int
    num_singletons: int
    per_query: QueryMetrics
    coarse: CoarseScores | None = None

    def metrics(self) -> dict[str, float]:
        """Return the metrics by name; ``nmi`` and the coarse ones only where they were computed."""
        nmi = {} if self.nmi is None else {"nmi": self.nmi}
        return self.per_query.means() | nmi | ({} if self.coarse is None else self.coarse.metrics())


@dataclass(frozen=True)
class Task:
    """Queries that have a partner, and where the right answers are.

    Attributes:
        labels: ``(Q,)`` of all queries.
        chosen: rows of the queries that have a partner.
        singletons: rows of those that have none.
        index: the gallery by label.
        within: the queries are the gallery.
        method: how ranks are found.
    """

    labels: Int64
    chosen: Int64
    singletons: Int64
    index: PositiveIndex
    within: bool
    method: Method

    @classmethod
    def plan(cls, labels: Int64, gallery_labels: Int64, *, within: bool, device: str) -> Task:
        """Find who has a partner.

        Raises:
            DataError: nobody has.
        """
        index = PositiveIndex(gallery_labels)
        counts = index.counts(labels, within=within)
        chosen = np.flatnonzero(counts > 0)
        if not len(chosen):
            raise DataError(
                f"retrieval: no query has a partner, got {len(labels)} queries and {len(gallery_labels)} "
                "gallery rows that share no class. Score rows of which at least two share a class."
            )
        method = choose_method(len(gallery_labels), float(counts[chosen].mean()), device)
        return cls(labels, chosen, np.flatnonzero(counts <= 0), index, within, method)

    def complete(self, parts: list[QueryMetrics], singletons: Singletons) -> QueryMetrics:
        """Join the blocks, with the singletons as misses if asked."""
        missed = [QueryMetrics.misses(self.singletons)] if singletons == "miss" else []
        return QueryMetrics.join(parts + missed)


def score(
    embeddings: Float,
    labels: Int64,
    *,
    coarse: Int64 | None = None,
    singletons: Singletons = "skip",
    nmi: bool = True,
    device: str = "cpu",
    seed: int = 0,
) -> RetrievalScores:
    """Score ``(N, D)`` embeddings with ``(N,)`` labels: each row is a query, all others its gallery.

    Args:
        embeddings: rows of unit length; others are normalised first. A zero row has cosine 0 with all.
        labels: class of each row.
        coarse: ``(N,)`` coarse class of each row, to score on these too; takes about as long as sorting every row.
        singletons: ``skip`` queries whose class has no other row, or count them as a ``miss``.
        nmi: also cluster the rows; with thousands of classes this takes longer than all the rest.
        device: torch device of the products, ``cpu`` or ``cuda``.
        seed: of the clustering.

    Raises:
        DataError: a row is not finite, labels do not match, or no query has a partner.
    """
    rows = unit_rows(embeddings, "retrieval")
    labels = matching_labels(labels, len(rows), "retrieval")
    task = Task.plan(labels, labels, within=True, device=device)
    per_query = task.complete(_score_blocks(task, rows, rows, device), singletons)
    clustered = _nmi(rows, labels, seed) if nmi else None
    return _summary(per_query, task, clustered, _coarse(rows, coarse, singletons, device))


def score_against(
    queries: Float,
    query_labels: Int64,
    gallery: Float,
    gallery_labels: Int64,
    *,
    singletons: Singletons = "skip",
    device: str = "cpu",
) -> RetrievalScores:
    """Score ``(Q, D)`` queries against an ``(N, D)`` gallery that does not hold them.

    Raises:
        DataError: as for :func:`score`, or the two widths differ.
    """
    asked, shelf = unit_rows(queries, "queries"), unit_rows(gallery, "gallery")
    if asked.shape[1] != shelf.shape[1]:
        raise DataError(
            f"retrieval: queries and gallery must be equally wide, got {asked.shape[1]} and "
            f"{shelf.shape[1]}. Embed both with one model."
        )
    query_labels = matching_labels(query_labels, len(asked), "queries")
    gallery_labels = matching_labels(gallery_labels, len(shelf), "gallery")
    task = Task.plan(query_labels, gallery_labels, within=False, device=device)
    return _summary(task.complete(_score_blocks(task, asked, shelf, device), singletons), task, None, None)


def _score_blocks(task: Task, queries: Float32, gallery: Float32, device: str) -> list[QueryMetrics]:
    blocks = similarity_blocks(queries, task.chosen, gallery, within=task.within, device=device)
    parts = []
    for places, block in blocks:
        rows = task.chosen[places]
        positives = task.index.of(task.labels[rows], rows if task.within else None)
        ranks = positive_ranks(block, positives, task.method)
        parts.append(QueryMetrics.of_ranks(rows, positives.counts, ranks))
    return parts


def _nmi(rows: Float32, labels: Int64, seed: int) -> float:
    clusters = kmeans_labels(rows, len(np.unique(labels)), seed)
    return normalized_mutual_information(labels, clusters)


def _coarse(rows: Float32, labels: Int64 | None, singletons: Singletons, device: str) -> CoarseScores | None:
    if labels is None:
        return None
    labels = matching_labels(labels, len(rows), "retrieval on coarse classes")
    return score_coarse(rows, labels, count_misses=singletons == "miss", device=device)


def _summary(per_query: QueryMetrics, task: Task, nmi: float | None, coarse: CoarseScores | None) -> RetrievalScores:
    return RetrievalScores(
        **per_query.means(),
        nmi=nmi,
        num_queries=len(per_query.rows),
        num_singletons=len(task.singletons),
        per_query=per_query,
        coarse=coarse,
    )
