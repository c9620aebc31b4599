"""Metrics of many subsets of a pack's members from one product a member.

The cosine of two concatenations is the mean of their members' cosines, so ``M`` products a query block serve
every subset: subsets are visited in lexicographic order and share the partial sums of their common prefixes.
Equal to scoring each concatenation, except where a member's row is zero: there the concatenation divides by
the members that have one, the mean by all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from sfora_ray.arrays import Float, Int64
from sfora_ray.errors import DataError
from sfora_ray.retrieval.metrics import QueryMetrics
from sfora_ray.retrieval.ranks import positive_ranks
from sfora_ray.retrieval.rows import matching_labels, unit_rows
from sfora_ray.retrieval.scores import Singletons, Task
from sfora_ray.retrieval.similarity import Gallery, block_rows, full_precision, hide_self

Subset = tuple[int, ...]


def pack_curve(
    blocks: Sequence[Float],
    labels: Int64,
    subsets: Sequence[Subset],
    *,
    singletons: Singletons = "skip",
    device: str = "cpu",
) -> dict[Subset, dict[str, float]]:
    """Return the metrics of the concatenation of each subset of members.

    Args:
        blocks: ``M`` matrices ``(N, D)`` of the same rows; widths may differ.
        labels: ``(N,)``.
        subsets: member numbers, each subset ascending and without repeats.
        singletons: as for :func:`~sfora_ray.retrieval.scores.score`.
        device: torch device of the products.

    Raises:
        DataError: a subset names no member, blocks have different rows, or as for ``score``.
    """
    for subset in subsets:
        _check(subset, len(blocks))
    rows = [unit_rows(block, f"member {member}") for member, block in enumerate(blocks)]
    labels = matching_labels(labels, len(rows[0]), "pack curve")
    if len({len(block) for block in rows}) > 1:
        raise DataError(
            f"pack curve: members must have the same rows, got {[len(block) for block in rows]}. "
            "Gather the members of one pack."
        )
    task = Task.plan(labels, labels, within=True, device=device)
    galleries = [Gallery(block, device) for block in rows]
    parts = _score_all(task, galleries, sorted(set(subsets)), device)
    return {subset: task.complete(parts[subset], singletons).means() for subset in subsets}


def _check(subset: Subset, num_members: int) -> None:
    if not subset or list(subset) != sorted(set(subset)) or not 0 <= subset[0] <= subset[-1] < num_members:
        raise DataError(
            f"pack curve: a subset must name members 0..{num_members - 1} in ascending order, got {subset}. "
            "Choose subsets with statistics.choose_subsets."
        )


def _score_all(
    task: Task, galleries: Sequence[Gallery], subsets: Sequence[Subset], device: str
) -> dict[Subset, list[QueryMetrics]]:
    num_rows, depth = len(galleries[0].rows), max(len(subset) for subset in subsets)
    size = min(block_rows(num_rows, device, len(galleries) + depth), len(task.chosen))
    products = [torch.empty(size, num_rows, device=device) for _ in galleries]
    sums = [torch.empty(size, num_rows, device=device) for _ in range(depth)]
    parts: dict[Subset, list[QueryMetrics]] = {subset: [] for subset in subsets}
    for start in range(0, len(task.chosen), size):
        rows = task.chosen[start : start + size]
        members = _member_similarities(galleries, rows, products)
        positives = task.index.of(task.labels[rows], rows)
        for subset, total in _sums(members, subsets, sums):
            ranks = positive_ranks(total, positives, task.method)
            parts[subset].append(QueryMetrics.of_ranks(rows, positives.counts, ranks))
    return parts


def _member_similarities(galleries: Sequence[Gallery], rows: Int64, buffers: Sequence[Tensor]) -> list[Tensor]:
    members = []
    for gallery, buffer in zip(galleries, buffers, strict=True):
        with full_precision():
            chosen = torch.from_numpy(rows).to(buffer.device)
            block = gallery.similarities(gallery.rows[chosen], buffer)
        hide_self(block, rows)
        members.append(block)
    return members


def _sums(
    members: Sequence[Tensor], subsets: Sequence[Subset], buffers: Sequence[Tensor]
) -> Iterator[tuple[Subset, Tensor]]:
    """Yield each subset and its summed similarities; ``buffers[i]`` sums its first ``i + 1`` members."""
    current: Subset = ()
    size = len(members[0])
    for subset in subsets:
        shared = _common_prefix(current, subset)
        for depth in range(shared, len(subset)):
            member = members[subset[depth]]
            if depth:
                torch.add(buffers[depth - 1][:size], member, out=buffers[depth][:size])
            else:
                buffers[0][:size].copy_(member)
        current = subset
        yield subset, buffers[len(subset) - 1][:size]


def _common_prefix(first: Subset, second: Subset) -> int:
    pairs = np.array([a == b for a, b in zip(first, second, strict=False)] + [False])
    return int(np.argmin(pairs))
