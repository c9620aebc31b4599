"""Which gallery rows are right answers to a query, as flat arrays grouped by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfora_ray.arrays import Int64


@dataclass(frozen=True)
class Positives:
    """Right answers of ``B`` queries.

    Attributes:
        counts: ``(B,)`` right answers of each query.
        columns: ``(P,)`` their gallery rows, query after query, ascending within a query.
    """

    counts: Int64
    columns: Int64

    @property
    def owners(self) -> Int64:
        """``(P,)`` the query that each column belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


class PositiveIndex:
    """Gallery rows by label."""

    def __init__(self, gallery_labels: Int64) -> None:
        self._order = np.argsort(gallery_labels, kind="stable")
        self._classes, self._starts, self._sizes = np.unique(
            gallery_labels[self._order], return_index=True, return_counts=True
        )

    def counts(self, labels: Int64, *, within: bool) -> Int64:
        """Return how many right answers queries of these labels have; ``within``: not itself."""
        if not len(self._classes):
            return np.zeros(len(labels), np.int64)
        place = np.minimum(np.searchsorted(self._classes, labels), len(self._classes) - 1)
        sizes = np.where(self._classes[place] == labels, self._sizes[place], 0)
        return sizes - 1 if within else sizes

    def of(self, labels: Int64, own_rows: Int64 | None) -> Positives:
        """Return the right answers of queries whose labels all occur; ``own_rows`` are left out."""
        place = np.searchsorted(self._classes, labels)
        sizes = self._sizes[place]
        firsts = np.cumsum(sizes) - sizes
        offsets = np.arange(sizes.sum()) - np.repeat(firsts, sizes)
        columns = self._order[np.repeat(self._starts[place], sizes) + offsets]
        if own_rows is None:
            return Positives(sizes, columns)
        return Positives(sizes - 1, columns[columns != np.repeat(own_rows, sizes)])
