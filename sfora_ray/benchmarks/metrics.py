"""All retrieval metrics together against the bare product ``X X'`` in blocks."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sfora_ray.arrays import Float32, Int64
from sfora_ray.benchmarks.base import BenchmarkResult, time_in_turn
from sfora_ray.benchmarks.packs import made_up_pack
from sfora_ray.retrieval import RetrievalScores, score

PER_CLASS = 5
BLOCK_ELEMENTS = 2**24
CHECKED = 50


def run(*, quick: bool = False) -> BenchmarkResult:
    """Score 60,000 rows of width 512, five a class, as in Stanford Online Products."""
    rows, dim, rounds = (600, 32, 1) if quick else (60_000, 512, 3)
    blocks, labels = made_up_pack(1, rows, dim, PER_CLASS)
    embeddings = blocks[0]
    timing = time_in_turn(lambda: score(embeddings, labels, nmi=False), lambda: bare_product(embeddings), rounds)
    _check(timing.ours, timing.theirs, labels)
    return BenchmarkResult(
        name="metrics",
        ours_seconds=timing.ours_seconds,
        theirs_seconds=timing.theirs_seconds,
        ratio=timing.ours_seconds / timing.theirs_seconds,
        mark="<= 1.3",
        peak_mib=timing.peak_mib,
        note=f"n {rows}, d {dim}; hits of {CHECKED} queries equal a full sort of the bare product",
    )


def bare_product(embeddings: Float32) -> Tensor:
    """Return the last block ``(B, N)`` of the product, after all others."""
    rows = torch.from_numpy(embeddings)
    size = max(1, min(BLOCK_ELEMENTS // len(rows), len(rows)))
    buffer = torch.empty(size, len(rows))
    for start in range(0, len(rows), size):
        chosen = rows[start : start + size]
        block = torch.mm(chosen, rows.T, out=buffer[: len(chosen)])
    return block


def _check(scores: RetrievalScores, block: Tensor, labels: Int64) -> None:
    last = block[-min(CHECKED, len(block)) :].clone()
    rows = np.arange(len(labels) - len(last), len(labels))
    last[torch.arange(len(last)), torch.from_numpy(rows)] = -torch.inf
    hits = labels[last.argmax(1).numpy()] == labels[rows]
    assert np.array_equal(scores.per_query.recall_at_1[-len(rows) :], hits), "both sides must rank alike"
