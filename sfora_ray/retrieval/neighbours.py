"""Nearest neighbours, exactly: descending float32 cosine, then the lower row number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfora_ray.arrays import Float, Float32, Int64
from sfora_ray.errors import DataError
from sfora_ray.retrieval.rows import unit_rows
from sfora_ray.retrieval.similarity import similarity_blocks


@dataclass(frozen=True)
class Neighbours:
    """What was found for ``Q`` queries, nearest first.

    Attributes:
        indices: ``(Q, K)`` gallery rows, each once within a query.
        similarities: ``(Q, K)`` their cosines.
    """

    indices: Int64
    similarities: Float32


def nearest(queries: Float, gallery: Float | None = None, *, k: int, rows: Int64 | None = None) -> Neighbours:
    """Return the ``k`` nearest gallery rows of each query, or all there are if those are fewer.

    Args:
        queries: ``(Q, D)``; without a gallery they are their own, and a row is never its own neighbour.
        gallery: ``(N, D)``.
        k: neighbours a query, at least 1.
        rows: search for these query rows only.

    Raises:
        DataError: ``k`` below 1, a row that is not finite, or different widths.
    """
    if k < 1:
        raise DataError(f"search: k must be at least 1, got {k}. Ask for one neighbour or more.")
    asked = unit_rows(queries, "queries")
    shelf = asked if gallery is None else unit_rows(gallery, "gallery")
    if asked.shape[1] != shelf.shape[1]:
        raise DataError(
            f"search: queries and gallery must be equally wide, got {asked.shape[1]} and {shelf.shape[1]}. "
            "Embed both with one model."
        )
    chosen = np.arange(len(asked)) if rows is None else np.asarray(rows, dtype=np.int64)
    width = min(k, len(shelf) - (gallery is None))
    found = Neighbours(np.empty((len(chosen), width), np.int64), np.empty((len(chosen), width), np.float32))
    if width < 1:
        return found
    for places, block in similarity_blocks(asked, chosen, shelf, within=gallery is None, device="cpu"):
        for place, row in zip(places, block.numpy(), strict=True):
            best = _first(row, width)
            found.indices[place], found.similarities[place] = best, row[best]
    return found


def _first(row: Float32, width: int) -> Int64:
    # A partial selection breaks ties at the cut at will: take all that reach the cut, then sort stably.
    cut = np.partition(row, len(row) - width)[len(row) - width]
    candidates = np.flatnonzero(row >= cut)
    return candidates[np.argsort(-row[candidates], kind="stable")[:width]]
