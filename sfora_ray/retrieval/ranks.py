"""Ranks of the right answers, from which every metric follows.

The rank of a right answer ``p`` with similarity ``t`` is one more than the rows before it that reach ``t``
plus the rows after it that exceed ``t``: equal similarities go to the lower row number. Few right answers are
counted one by one, which costs one pass over the row each; many are looked up in the sorted row. On a GPU the
first right answer of every query is counted at once, then the second; many are read from a stable sort.
All give the same integers.
"""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from sfora_ray.arrays import Float32, Int64
from sfora_ray.retrieval.positives import Positives

Method = Literal["count", "search", "slots", "sort"]

COUNT_CALL_NS = 2000.0
SEARCH_CALL_NS = 15_000.0
COUNT_ELEMENT_NS = 0.15
SEARCH_ELEMENT_NS = 4.0
GPU_SLOTS = 64


def choose_method(gallery_rows: int, mean_positives: float, device: str) -> Method:
    """Return the cheapest way on this device, by measured costs of one pass and of one sort."""
    if device != "cpu":
        return "slots" if mean_positives <= GPU_SLOTS else "sort"
    count = mean_positives * (COUNT_CALL_NS + COUNT_ELEMENT_NS * gallery_rows)
    return "count" if count <= SEARCH_CALL_NS + SEARCH_ELEMENT_NS * gallery_rows else "search"


def positive_ranks(similarities: Tensor, positives: Positives, method: Method) -> Int64:
    """Return the ``(P,)`` ranks, from 1, of the right answers, ascending within each query.

    Args:
        similarities: ``(B, N)``; the query's own row, if it is one of them, holds minus infinity.
        positives: right answers of the ``B`` queries.
        method: ``count`` and ``search`` (on the CPU only), ``slots`` or ``sort`` (anywhere).
    """
    if method == "count":
        ranks = _by_counting(similarities.numpy(), positives)
    elif method == "search":
        ranks = _by_searching(similarities.numpy(), positives)
    elif method == "slots":
        ranks = _by_slots(similarities, positives)
    else:
        ranks = _by_sorting(similarities, positives)
    return ranks[np.lexsort((ranks, positives.owners))]


def _by_counting(similarities: Float32, positives: Positives) -> Int64:
    # Plain numbers keep the loop cheap; NumPy compares them in the row's own float32.
    values = similarities[positives.owners, positives.columns].tolist()
    asked = iter(zip(positives.columns.tolist(), values, strict=True))
    ranks = [
        1 + np.count_nonzero(row[:column] >= value) + np.count_nonzero(row[column + 1 :] > value)
        for row, count in zip(similarities, positives.counts.tolist(), strict=True)
        for column, value in itertools.islice(asked, count)
    ]
    return np.array(ranks, dtype=np.int64)


def _by_searching(similarities: Float32, positives: Positives) -> Int64:
    ranks = np.empty(len(positives.columns), np.int64)
    ends = np.cumsum(positives.counts)
    for row, end, count in zip(similarities, ends, positives.counts, strict=True):
        columns = positives.columns[end - count : end]
        ranks[end - count : end] = _search(row, columns)
    return ranks


def _search(row: Float32, columns: Int64) -> Int64:
    values = row[columns]
    # What ranks behind the last right answer need not be sorted.
    ordered = np.sort(row[row >= values.min()])
    reaching = len(ordered) - np.searchsorted(ordered, values, "left")
    ahead = len(ordered) - np.searchsorted(ordered, values, "right")
    for tied in np.flatnonzero(reaching > ahead + 1):
        ahead[tied] += np.count_nonzero(row[: columns[tied]] == values[tied])
    return np.asarray(1 + ahead, dtype=np.int64)


def _by_slots(similarities: Tensor, positives: Positives) -> Int64:
    """Rank the first right answer of every query at once, then the second, and so on."""
    device = similarities.device
    firsts = np.cumsum(positives.counts) - positives.counts
    rows = torch.arange(similarities.shape[1], device=device)  # (N,)
    ranks = np.empty(len(positives.columns), np.int64)
    for slot in range(int(positives.counts.max(initial=0))):
        queries = np.flatnonzero(positives.counts > slot)
        places = firsts[queries] + slot
        block = similarities[torch.from_numpy(queries).to(device)]  # (b, N)
        columns = torch.from_numpy(positives.columns[places]).to(device)[:, None]  # (b, 1)
        values = block.gather(1, columns)  # (b, 1)
        ahead = (block > values) | ((block == values) & (rows < columns))
        ranks[places] = (1 + ahead.sum(1)).cpu().numpy()
    return ranks


def _by_sorting(similarities: Tensor, positives: Positives) -> Int64:
    device = similarities.device
    order = torch.sort(similarities, dim=1, descending=True, stable=True).indices  # (B, N)
    places = torch.empty_like(order)
    places.scatter_(1, order, torch.arange(order.shape[1], device=device).expand_as(order))
    owners = torch.from_numpy(positives.owners).to(device)
    columns = torch.from_numpy(positives.columns).to(device)
    ranks: Int64 = (1 + places[owners, columns]).cpu().numpy()
    return ranks
