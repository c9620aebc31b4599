"""The handful of sums from which every fold is fitted.

Rows are ``x = [b_1 .. b_M]``, the members' L2-normalised embeddings side by side (their common factor
``1 / sqrt(M)`` is left out: no fold depends on it). Sums over rows add up, so moments stream over any number
of rows, are summed over machines, and what is fitted from them costs the same for any number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import blas

from sfora_ray.arrays import Float, Float64, Int64, l2_normalize
from sfora_ray.errors import DataError

CHUNK_ROWS = 8192


@dataclass(frozen=True)
class Moments:
    """Sums over rows of ``M`` members' blocks, each ``D`` wide.

    Attributes:
        gram: ``(M*D, M*D)`` sum of the outer products of rows.
        total: ``(M*D,)`` sum of the rows.
        classes: ``(C,)`` the labels that occur, ascending.
        class_sums: ``(C, M*D)`` sum of each class's rows.
        class_counts: ``(C,)`` its number of rows.
        num_rows: N.
        num_members: M.
        dim: D.
    """

    gram: Float64
    total: Float64
    classes: Int64
    class_sums: Float64
    class_counts: Int64
    num_rows: int
    num_members: int
    dim: int

    @classmethod
    def of(cls, blocks: Sequence[Float], labels: Int64, chunk_rows: int = CHUNK_ROWS) -> Moments:
        """Sum over ``M`` blocks ``(N, D)``; rows are normalised here, chunk by chunk.

        Products are taken in the blocks' own precision and summed in float64.

        Raises:
            DataError: blocks of different shapes, other labels than rows, no rows, or a row not finite.
        """
        _check_shapes(blocks, labels)
        classes, numbers = np.unique(np.asarray(labels, dtype=np.int64), return_inverse=True)
        dim, width = blocks[0].shape[1], len(blocks) * blocks[0].shape[1]
        gram, class_sums = np.zeros((width, width), order="F"), np.zeros((len(classes), width))
        for start in range(0, len(labels), chunk_rows):
            rows = stack_rows(blocks, start, start + chunk_rows)  # (n, M*D)
            gram += _upper_products(rows)
            _add_class_sums(class_sums, rows, numbers[start : start + chunk_rows])
        gram = np.triu(gram) + np.triu(gram, 1).T
        counts = np.bincount(numbers, minlength=len(classes))
        return cls(gram, class_sums.sum(0), classes, class_sums, counts, len(labels), len(blocks), dim)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of both.

        Raises:
            DataError: they have other members or widths.
        """
        if (self.num_members, self.dim) != (other.num_members, other.dim):
            raise DataError(
                f"moments: only blocks of equal shape add up, got {self.num_members} members of width "
                f"{self.dim} and {other.num_members} of {other.dim}. Sum moments of one pack."
            )
        classes = np.union1d(self.classes, other.classes)
        sums, counts = np.zeros((len(classes), len(self.total))), np.zeros(len(classes), np.int64)
        for part in (self, other):
            place = np.searchsorted(classes, part.classes)
            sums[place] += part.class_sums
            counts[place] += part.class_counts
        return Moments(
            self.gram + other.gram,
            self.total + other.total,
            classes,
            sums,
            counts,
            self.num_rows + other.num_rows,
            self.num_members,
            self.dim,
        )

    def members(self, indices: Sequence[int]) -> Moments:
        """Return the moments of some members only, in the given order.

        Raises:
            DataError: a member that is not there, or none.
        """
        if not indices or not all(0 <= index < self.num_members for index in indices):
            raise DataError(
                f"moments: members must be among 0..{self.num_members - 1}, got {list(indices)}. Name at least one."
            )
        columns = np.concatenate([np.arange(self.dim) + index * self.dim for index in indices])
        return Moments(
            self.gram[np.ix_(columns, columns)],
            self.total[columns],
            self.classes,
            self.class_sums[:, columns],
            self.class_counts,
            self.num_rows,
            len(indices),
            self.dim,
        )

    def through(self, matrix: Float64, mean: Float64 | None) -> Moments:
        """Return the moments of ``(x - mean) @ matrix`` as one member's; rows are not normalised again."""
        gram, sums, total = self.gram, self.class_sums, self.total
        if mean is not None:
            cross = np.outer(total, mean)
            gram = gram - cross - cross.T + self.num_rows * np.outer(mean, mean)
            sums = sums - np.outer(self.class_counts, mean)
            total = total - self.num_rows * mean
        return Moments(
            matrix.T @ gram @ matrix,
            total @ matrix,
            self.classes,
            sums @ matrix,
            self.class_counts,
            self.num_rows,
            1,
            matrix.shape[1],
        )

    @property
    def width(self) -> int:
        """Width of a concatenated row, ``M * D``."""
        return len(self.total)

    @property
    def mean(self) -> Float64:
        """``(M*D,)`` mean row."""
        return np.asarray(self.total / self.num_rows, dtype=np.float64)

    def block(self, first: int, second: int) -> Float64:
        """Return ``(D, D)`` the products of one member's columns with another's."""
        rows = slice(first * self.dim, (first + 1) * self.dim)
        columns = slice(second * self.dim, (second + 1) * self.dim)
        return self.gram[rows, columns]

    def within_class_scatter(self) -> Float64:
        """Return ``(M*D, M*D)`` the sum of outer products of rows minus their class mean."""
        scaled = self.class_sums / np.sqrt(self.class_counts)[:, None]
        return np.asarray(self.gram - scaled.T @ scaled, dtype=np.float64)


def stack_rows(blocks: Sequence[Float], start: int, stop: int) -> Float:
    """Return rows ``start..stop`` of all members side by side, ``(n, M*D)``, each of unit length."""
    return np.concatenate([l2_normalize(np.asarray(block[start:stop])) for block in blocks], axis=1)


def _check_shapes(blocks: Sequence[Float], labels: Int64) -> None:
    shapes = [np.shape(block) for block in blocks]
    if not shapes or len(set(shapes)) > 1 or len(shapes[0]) != 2 or len(labels) != shapes[0][0] or not len(labels):
        raise DataError(
            f"fold: members need blocks of one shape (N, D) and a label a row, got {shapes} and "
            f"{len(labels)} labels. Gather the members of one pack."
        )


def _upper_products(rows: Float) -> Float:
    if not np.isfinite(rows.sum()):
        bad = np.flatnonzero(~np.isfinite(rows).all(1))
        raise DataError(
            f"fold: embeddings must be finite, got NaN or infinity in {len(bad)} rows. "
            "Leave that member out, or train it again."
        )
    # A symmetric product needs half the work; only the upper triangle is filled.
    product = blas.ssyrk if rows.dtype == np.float32 else blas.dsyrk
    return np.asarray(product(1.0, rows.T))


def _add_class_sums(class_sums: Float64, rows: Float, numbers: Int64) -> None:
    present, places = np.unique(numbers, return_inverse=True)
    ones = np.ones(len(rows), rows.dtype)
    chooser = sparse.csr_array((ones, (places, np.arange(len(rows)))), shape=(len(present), len(rows)))
    class_sums[present] += chooser @ rows
