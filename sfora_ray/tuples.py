"""Which rows of a batch are compared: pairs and triplets, as positions.

Miners choose them, objectives weigh them. An anchor is a row of the first set, its partners are rows of the second;
often both are the same batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Pairs:
    """Positive and negative pairs, each ``(P,)`` or ``(Q,)`` int64 positions.

    Attributes:
        anchors: ``(P,)`` rows of the first set.
        positives: ``(P,)`` rows of the second set, of the anchor's class.
        negative_anchors: ``(Q,)`` rows of the first set.
        negatives: ``(Q,)`` rows of the second set, of other classes.
    """

    anchors: Tensor
    positives: Tensor
    negative_anchors: Tensor
    negatives: Tensor


@dataclass(frozen=True)
class Triplets:
    """Anchor, positive, negative: ``(T,)`` int64 positions each; partners are rows of the second set."""

    anchors: Tensor
    positives: Tensor
    negatives: Tensor


def pairs_within(labels: Tensor) -> Pairs:
    """Return all ordered pairs of different rows of one batch with ``(B,)`` labels."""
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return _pairs(labels, labels, itself)


def pairs_between(labels: Tensor, other_labels: Tensor) -> Pairs:
    """Return all pairs of a row of ``(B,)`` with a row of ``(R,)``; equal positions are no self-match."""
    nothing = torch.zeros(len(labels), len(other_labels), dtype=torch.bool, device=labels.device)
    return _pairs(labels, other_labels, nothing)


def triplets_of(pairs: Pairs) -> Triplets:
    """Return every positive pair joined with every negative of the same anchor, in the order of the positive pairs."""
    grouped = pairs.negative_anchors.argsort(stable=True)  # (Q,) negatives, those of one anchor together
    anchors = pairs.negative_anchors[grouped]
    first = torch.searchsorted(anchors, pairs.anchors)  # (P,)
    count = torch.searchsorted(anchors, pairs.anchors, right=True) - first  # (P,)
    chosen = torch.arange(len(count), device=count.device).repeat_interleave(count)  # (T,)
    within = torch.arange(len(chosen), device=count.device) - (count.cumsum(0) - count)[chosen]
    return Triplets(pairs.anchors[chosen], pairs.positives[chosen], pairs.negatives[grouped[first[chosen] + within]])


def _pairs(labels: Tensor, other_labels: Tensor, excluded: Tensor) -> Pairs:
    same = labels[:, None] == other_labels  # (B, R)
    anchors, positives = (same & ~excluded).nonzero(as_tuple=True)
    negative_anchors, negatives = (~same).nonzero(as_tuple=True)
    return Pairs(anchors, positives, negative_anchors, negatives)
