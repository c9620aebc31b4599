"""Pairs and triplets against slow loops, on unequal classes and shuffled rows."""

from __future__ import annotations

import pytest
import torch

from sfora_ray.randomness import torch_generator
from sfora_ray.tuples import Pairs, pairs_between, pairs_within, triplets_of

LABELS = [[3, 1, 3, 2, 1, 3, 0], [5, 5, 5], [0, 1, 2], [4], [1, 0, 1, 0, 0]]


def listed(pairs: Pairs) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    positive = list(zip(pairs.anchors.tolist(), pairs.positives.tolist(), strict=True))
    return positive, list(zip(pairs.negative_anchors.tolist(), pairs.negatives.tolist(), strict=True))


@pytest.mark.parametrize("labels", LABELS)
def test_pairs_within_a_batch(labels: list[int]) -> None:
    places = range(len(labels))
    every = [(i, j) for i in places for j in places if i != j]
    positive, negative = listed(pairs_within(torch.tensor(labels)))
    assert positive == [(i, j) for i, j in every if labels[i] == labels[j]]
    assert negative == [(i, j) for i, j in every if labels[i] != labels[j]]


@pytest.mark.parametrize("labels", LABELS)
def test_equal_positions_of_two_sets_are_no_self_match(labels: list[int]) -> None:
    others = labels[::-1]
    every = [(i, j) for i in range(len(labels)) for j in range(len(others))]
    positive, negative = listed(pairs_between(torch.tensor(labels), torch.tensor(others)))
    assert positive == [(i, j) for i, j in every if labels[i] == others[j]]
    assert negative == [(i, j) for i, j in every if labels[i] != others[j]]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_triplets_join_pairs_of_one_anchor_in_their_order(labels: list[int], share: float) -> None:
    pairs = pairs_within(torch.tensor(labels))
    orders = [
        torch.randperm(count, generator=torch_generator(count))[: round(share * count)]
        for count in (len(pairs.anchors), len(pairs.negatives))
    ]
    some = Pairs(
        pairs.anchors[orders[0]],
        pairs.positives[orders[0]],
        pairs.negative_anchors[orders[1]],
        pairs.negatives[orders[1]],
    )
    positive, negative = listed(some)
    expected = [(a, p, n) for a, p in positive for b, n in negative if a == b]
    found = triplets_of(some)
    columns = (found.anchors.tolist(), found.positives.tolist(), found.negatives.tolist())
    assert list(zip(*columns, strict=True)) == expected
