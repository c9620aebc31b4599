"""Normalised mutual information of seeded k-means clusters and the labels.

As many clusters as classes (faiss k-means, every row used), and the arithmetic mean of the two entropies
as the denominator, as in pytorch-metric-learning. The HIST and Proxy Anchor programs divide by the geometric
mean instead. Computed from the contingency table.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sfora_ray.arrays import Float32, Float64, Int64
from sfora_ray.randomness import derive_seed

ITERATIONS = 20


def kmeans_labels(rows: Float32, num_clusters: int, seed: int) -> Int64:
    """Return the ``(N,)`` cluster of each of ``(N, D)`` rows; the same seed gives the same clusters."""
    faiss = _faiss()
    clusterer = faiss.Kmeans(
        rows.shape[1],
        num_clusters,
        niter=ITERATIONS,
        seed=derive_seed(seed, "kmeans") % 2**31,
        min_points_per_centroid=1,
        max_points_per_centroid=len(rows),
    )
    clusterer.train(rows)
    return np.asarray(clusterer.index.search(rows, 1)[1][:, 0], dtype=np.int64)


def _faiss() -> Any:
    with warnings.catch_warnings():
        # The generated bindings announce types without a module, which Python deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        import faiss
    return faiss


def normalized_mutual_information(first: Int64, second: Int64) -> float:
    """Return NMI in 0..1 of two labelings of ``(N,)`` rows; two constant labelings agree fully."""
    joint, row_sums, column_sums = _contingency(first, second)
    entropies = _entropy(row_sums) + _entropy(column_sums)
    if entropies == 0:
        return 1.0
    information = entropies - _entropy(joint)
    return float(np.clip(2 * information / entropies, 0, 1))


def _contingency(first: Int64, second: Int64) -> tuple[Int64, Int64, Int64]:
    # Only the cells that occur: a full table of SOP would be 11,316 squared.
    _, rows, row_sums = np.unique(first, return_inverse=True, return_counts=True)
    _, columns, column_sums = np.unique(second, return_inverse=True, return_counts=True)
    _, joint = np.unique(rows * len(column_sums) + columns, return_counts=True)
    return joint, row_sums, column_sums


def _entropy(counts: Int64) -> float:
    shares: Float64 = counts / counts.sum()
    return float(-np.sum(shares * np.log(shares)))
