"""Rows as retrieval needs them: finite, float32, of unit length, and with their exact duplicates known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfora_ray.arrays import Float, Float32, Int64, l2_normalize
from sfora_ray.errors import DataError

NORM_TOLERANCE = 1e-5
CHUNK = 8192


def unit_rows(embeddings: Float, place: str) -> Float32:
    """Return ``(N, D)`` float32 rows of unit length; a zero row stays zero: cosine 0.

    Rows that already have unit length are passed on as they are, without a copy.

    Raises:
        DataError: not a matrix, or a row that holds NaN or infinity (the message names the first).
    """
    rows = np.asarray(embeddings)
    if rows.ndim != 2:
        raise DataError(f"{place}: embeddings must be (N, D), got shape {rows.shape}. Pass one row an image.")
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    norms = _norms(rows)
    bad = np.flatnonzero(~np.isfinite(norms))
    if len(bad):
        raise DataError(
            f"{place}: embeddings must be finite, got NaN or infinity in {len(bad)} rows, first row "
            f"{bad[0]}. Train that member again, or leave it out."
        )
    off = np.abs(norms - 1) > NORM_TOLERANCE
    if np.any(off & (norms > 0)):
        rows = np.asarray(l2_normalize(rows), dtype=np.float32)
    return rows


def _norms(rows: Float32) -> Float32:
    # By chunks: squaring all rows at once would need a second copy of the input.
    parts = [np.linalg.norm(rows[start : start + CHUNK], axis=1) for start in range(0, len(rows), CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def matching_labels(labels: Int64, rows: int, place: str) -> Int64:
    """Return ``labels`` as int64, one per row.

    Raises:
        DataError: another number of labels than rows.
    """
    checked = np.asarray(labels, dtype=np.int64)
    if checked.shape != (rows,):
        raise DataError(f"{place}: {rows} rows need as many labels, got shape {checked.shape}. Pass one label a row.")
    return checked


@dataclass(frozen=True)
class Duplicates:
    """Rows that repeat an earlier row bit for bit.

    Attributes:
        copies: ``(K,)`` row numbers of the repeats.
        originals: ``(K,)`` the lowest row that each equals.
    """

    copies: Int64
    originals: Int64

    @classmethod
    def of(cls, rows: Float32) -> Duplicates:
        """Find the repeats among ``(N, D)`` rows, whole where their first two numbers agree."""
        suspects = _sharing_a_start(rows)
        whole = np.ascontiguousarray(rows[suspects]).view(np.dtype((np.void, max(rows.shape[1], 1) * 4))).ravel()
        _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
        originals = suspects[first[inverse]]
        repeated = originals != suspects
        return cls(suspects[repeated], originals[repeated])


def _sharing_a_start(rows: Float32) -> Int64:
    starts = rows[:, :2].copy()
    if starts.shape[1] < 2:
        return np.arange(len(rows))
    _, inverse, counts = np.unique(starts.view(np.uint64).ravel(), return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[inverse] > 1)
