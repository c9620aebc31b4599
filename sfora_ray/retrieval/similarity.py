"""Cosine similarities of a block of queries with the whole gallery, in one reused buffer.

The product of float32 rows is never kept as a whole: memory is one block, whatever the number of queries.
Bit-equal gallery rows get bit-equal similarities: a matrix product may sum two equal columns in different
orders, so the column of a duplicate is copied from its original. Ties between duplicates are therefore ties
on every machine, and the lower row number decides them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from sfora_ray.arrays import Float32, Int64
from sfora_ray.retrieval.rows import Duplicates

CPU_BLOCK = 2**24
GPU_BLOCK = 2**27


@contextmanager
def full_precision() -> Iterator[None]:
    """Keep float32 products float32: TF32, if training switched it on, would change the ranking."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def block_rows(gallery_rows: int, device: str, buffers: int = 1) -> int:
    """Return how many queries fit in one block when ``buffers`` blocks are held at once."""
    budget = CPU_BLOCK if device == "cpu" else GPU_BLOCK
    return max(1, budget // max(1, gallery_rows * buffers))


class Gallery:
    """Gallery rows on a device, and the duplicates among them."""

    def __init__(self, rows: Float32, device: str) -> None:
        # Rows that came through shared memory are read-only, and torch takes no such memory.
        self.rows = torch.from_numpy(rows if rows.flags.writeable else rows.copy()).to(device)  # (N, D)
        duplicates = Duplicates.of(rows)
        self.copies = torch.from_numpy(duplicates.copies).to(device)
        self.originals = torch.from_numpy(duplicates.originals).to(device)

    def similarities(self, queries: Tensor, out: Tensor) -> Tensor:
        """Write the cosines of ``(B, D)`` queries with all rows into the first ``B`` rows of ``out``."""
        block = torch.mm(queries, self.rows.T, out=out[: len(queries)])  # (B, N)
        if len(self.copies):
            block[:, self.copies] = block[:, self.originals]
        return block


def hide_self(block: Tensor, rows: Int64) -> None:
    """Put each query's similarity with itself below every other, by row number."""
    own = torch.from_numpy(rows).to(block.device)
    block[torch.arange(len(rows), device=block.device), own] = -torch.inf


def similarity_blocks(
    queries: Float32, chosen: Int64, gallery: Float32, *, within: bool, device: str
) -> Iterator[tuple[Int64, Tensor]]:
    """Yield ``(positions in chosen, similarities (B, N))``; the buffer is overwritten by the next block.

    Args:
        queries: ``(Q, D)`` unit rows.
        chosen: row numbers of the queries to use.
        gallery: ``(N, D)`` unit rows.
        within: queries are the gallery itself, so each query's own row is hidden.
        device: torch device of the product.
    """
    shelf = Gallery(gallery, device)
    size = block_rows(len(gallery), device)
    buffer = torch.empty(min(size, len(chosen)), len(gallery), device=device)
    for start in range(0, len(chosen), size):
        rows = chosen[start : start + size]
        with full_precision():
            block = shelf.similarities(_take(queries, rows, shelf.rows if within else None), buffer)
        if within:
            hide_self(block, rows)
        yield np.arange(start, start + len(rows)), block


def _take(queries: Float32, rows: Int64, on_device: Tensor | None) -> Tensor:
    if on_device is not None:
        return on_device[torch.from_numpy(rows).to(on_device.device)]
    return torch.from_numpy(queries[rows])
