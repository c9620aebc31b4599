"""Which queries a report shows, and what the pack finds for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfora_ray.arrays import Float32, Int64, Strings
from sfora_ray.errors import DataError
from sfora_ray.pack.gather import SplitBlocks, join
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.randomness import numpy_generator
from sfora_ray.retrieval import nearest

QUERIES = 10
NEIGHBOURS = 5

# Enough to find wrong answers of a good pack, few enough to be searched in seconds among 60,000 images.
_CANDIDATES = 500


@dataclass(frozen=True)
class Finds:
    """Some queries and their nearest test images, as rows of one embedding table.

    Attributes:
        ids: ``(N,)`` image ids of the whole table.
        labels: ``(N,)`` class labels of the whole table.
        queries: ``(Q,)`` rows of the queries, those that fail first.
        found: ``(Q, K)`` rows of their neighbours, nearest first.
    """

    ids: Strings
    labels: Int64
    queries: Int64
    found: Int64


def find_neighbours(run: RunFolder) -> Finds:
    """Search by the concatenation of the finished members, for a seeded mix of right and wrong queries.

    Raises:
        SforaError: embeddings are absent, damaged, or not of the same images.
    """
    test = _test_blocks(run)
    rows: Float32 = np.concatenate(test.blocks, axis=1)  # (N, M * D)
    generator = numpy_generator(0, "report", run.manifest().digest, "queries")
    candidates = generator.permutation(_with_partner(test.labels))[:_CANDIDATES]
    found = nearest(rows, k=NEIGHBOURS, rows=candidates).indices  # (Q, K)
    chosen = _mix(test.labels[found[:, 0]] == test.labels[candidates]) if found.shape[1] else np.arange(0)
    return Finds(test.ids, test.labels, candidates[chosen], found[chosen])


def _test_blocks(run: RunFolder) -> SplitBlocks:
    members = run.finished()
    if not members:
        raise DataError(f"{run.path}: no member finished, so there are no embeddings to search.")
    return join(members, [run.embeddings(member, "test") for member in members], "test")


def _with_partner(labels: Int64) -> Int64:
    """Return the rows whose class has another image; the others cannot be found, so they are no queries."""
    _, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[classes] > 1)


def _mix(right: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int64:
    """Choose half wrong and half right queries, wrong first; where one kind is short, more of the other."""
    wrong_places, right_places = np.flatnonzero(~right), np.flatnonzero(right)
    num_wrong = min(len(wrong_places), max(QUERIES // 2, QUERIES - len(right_places)))
    return np.concatenate([wrong_places[:num_wrong], right_places[: QUERIES - num_wrong]])
