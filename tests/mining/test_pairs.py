from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from sfora_ray.losses import ContrastiveOptions, MultiSimilarityOptions, TupleObjective
from sfora_ray.mining import HdcOptions, MinerOptions, MultiSimilarityMinerOptions, PairMarginMinerOptions
from sfora_ray.randomness import torch_generator
from sfora_ray.tuples import Pairs, pairs_within
from tests.losses.reference import assert_close, load_case, tensor
from tests.mining.rows import LABELS, rows_of


def mined(options: MinerOptions, rows: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Pairs:
    pairs = options.build()(rows, labels, candidates)
    assert isinstance(pairs, Pairs)
    return pairs


def both(pairs: Pairs) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return positive and negative pairs as sets; none may come twice."""
    positive = list(zip(pairs.anchors.tolist(), pairs.positives.tolist(), strict=True))
    negative = list(zip(pairs.negative_anchors.tolist(), pairs.negatives.tolist(), strict=True))
    assert len(set(positive)) == len(positive)
    assert len(set(negative)) == len(negative)
    return set(positive), set(negative)


def unordered(pairs: Pairs) -> list[Counter[frozenset[int]]]:
    """Return how often each two rows meet: a pair and its mirror are as hard as each other, and one may be cut."""
    return [Counter(frozenset(pair) for pair in kind) for kind in both(pairs)]


def recorded(case: dict[str, Any], prefix: str) -> Pairs:
    return Pairs(*(tensor(case, f"{prefix}_{key}") for key in ("a1", "p", "a2", "n")))


def objective(options: ContrastiveOptions | MultiSimilarityOptions) -> TupleObjective:
    return options.build(dim=4, num_classes=9, generator=torch_generator(0))


@pytest.mark.parametrize("name", ["c0_miner", "c0_miner0.3", "c1_miner0.3", "c2_miner", "c2_miner0.3"])
def test_multi_similarity_equals_the_reference_with_its_loss(name: str) -> None:
    case = load_case("pml_multisimilarity", name)
    rows, labels = tensor(case, "in/X", grad=True), tensor(case, "in/labels")
    pairs = mined(MultiSimilarityMinerOptions(epsilon=float(case["hp/epsilon"])), rows, labels)
    assert both(pairs) == both(recorded(case, "out/mined"))
    loss = objective(MultiSimilarityOptions()).compare(rows, rows, pairs)
    torch.autograd.backward(loss)
    assert_close(loss, case["out/loss"])
    assert rows.grad is not None
    assert_close(rows.grad, case["out/grad_X"])


@pytest.mark.parametrize("name", ["c0_pairmargin", "c1_pairmargin", "c2_pairmargin"])
def test_pair_margin_equals_the_reference(name: str) -> None:
    case = load_case("pml_contrastive", name)
    pairs = mined(PairMarginMinerOptions(), tensor(case, "in/X"), tensor(case, "in/labels"))
    assert both(pairs) == both(recorded(case, "out/mined"))


@pytest.mark.parametrize("name", ["c0", "c2_odd"])
def test_a_cascade_equals_the_reference(name: str) -> None:
    case = load_case("pml_hdc", name)
    rows, labels = tensor(case, "in/X", grad=True), tensor(case, "in/labels")
    stages = zip(torch.split(rows, case["in/sizes"].tolist(), dim=1), case["in/fractions"], strict=True)
    candidates, total = None, torch.zeros(())
    for stage, (part, fraction) in enumerate(stages):
        candidates = mined(HdcOptions(fraction=float(fraction)), part, labels, candidates)
        assert len(candidates.anchors) == case[f"out/stage{stage}_npos"]
        assert len(candidates.negatives) == case[f"out/stage{stage}_nneg"]
        assert unordered(candidates) == unordered(recorded(case, f"out/stage{stage}"))
        loss = objective(ContrastiveOptions()).compare(part, part, candidates)
        assert_close(loss, case[f"out/stage{stage}_loss"])
        total = total + loss
    torch.autograd.backward(total)
    assert_close(total, case["out/total"])
    assert rows.grad is not None
    assert_close(rows.grad, case["out/grad_X"])


def slow_multi_similarity(rows: Tensor, candidates: Pairs, epsilon: float) -> tuple[set[tuple[int, int]], ...]:
    positive, negative = both(candidates)
    cosine = {(i, j): float(rows[i] @ rows[j] / rows[i].norm() / rows[j].norm()) for i, j in positive | negative}
    kept_positive = {
        (i, j) for i, j in positive if any(cosine[i, j] - epsilon < cosine[a, n] for a, n in negative if a == i)
    }
    kept_negative = {
        (i, j) for i, j in negative if any(cosine[i, j] + epsilon > cosine[a, p] for a, p in positive if a == i)
    }
    return kept_positive, kept_negative


def slow_pair_margin(rows: Tensor, candidates: Pairs, above: float, below: float) -> tuple[set[tuple[int, int]], ...]:
    unit = [row / row.norm() for row in rows]
    positive, negative = both(candidates)
    return (
        {(i, j) for i, j in positive if float((unit[i] - unit[j]).norm()) > above},
        {(i, j) for i, j in negative if float((unit[i] - unit[j]).norm()) < below},
    )


def slow_hdc(rows: Tensor, candidates: Pairs, fraction: float) -> tuple[set[tuple[int, int]], ...]:
    unit = [row / row.norm() for row in rows]

    def hardest(pairs: set[tuple[int, int]], sign: float) -> set[tuple[int, int]]:
        ranked = sorted(pairs, key=lambda pair: (sign * float((unit[pair[0]] - unit[pair[1]]).norm()), pair))
        return set(ranked[: math.ceil(fraction * len(pairs))])

    positive, negative = both(candidates)
    return hardest(positive, -1), hardest(negative, 1)


def some_of(pairs: Pairs, seed: int) -> Pairs:
    """Return about half of the pairs, shuffled."""

    def half(count: int) -> Tensor:
        return torch.randperm(count, generator=torch_generator(seed))[: count // 2]

    positive, negative = half(len(pairs.anchors)), half(len(pairs.negatives))
    return Pairs(
        pairs.anchors[positive],
        pairs.positives[positive],
        pairs.negative_anchors[negative],
        pairs.negatives[negative],
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("chosen", [False, True])
def test_miners_equal_slow_loops_with_and_without_candidates(seed: int, chosen: bool) -> None:
    rows = rows_of(9, seed)
    candidates = some_of(pairs_within(LABELS), seed) if chosen else pairs_within(LABELS)
    given = candidates if chosen else None
    for epsilon in (0.0, 0.1, 0.7):
        options = MultiSimilarityMinerOptions(epsilon=epsilon)
        assert both(mined(options, rows, LABELS, given)) == slow_multi_similarity(rows, candidates, epsilon)
    for above, below in ((0.0, 1.4), (0.9, 0.8)):
        bounds = PairMarginMinerOptions(positive_above=above, negative_below=below)
        assert both(mined(bounds, rows, LABELS, given)) == slow_pair_margin(rows, candidates, above, below)


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.3, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_hdc_equals_slow_loops(fraction: float, seed: int) -> None:
    rows = rows_of(9, seed)  # a pair and its mirror are equally far: ties go to the earlier one
    pairs = mined(HdcOptions(fraction=fraction), rows, LABELS)
    assert both(pairs) == slow_hdc(rows, pairs_within(LABELS), fraction)


def test_hdc_counts_of_a_cascade() -> None:
    labels, candidates = torch.arange(4).repeat(3), None
    counts = []
    for stage, fraction in enumerate((1.0, 0.5, 0.5)):
        candidates = mined(HdcOptions(fraction=fraction), rows_of(12, stage), labels, candidates)
        counts.append((len(candidates.anchors), len(candidates.negatives)))
    assert counts == [(24, 108), (12, 54), (6, 27)]


@pytest.mark.parametrize(("labels", "counts"), [([0, 0, 1], (1, 1)), ([0, 0, 0], (1, 0)), ([0, 1, 2], (0, 1))])
def test_a_tiny_share_keeps_the_hardest_pair_of_each_kind_there_is(labels: list[int], counts: tuple[int, int]) -> None:
    kept = mined(HdcOptions(fraction=1e-12), rows_of(3, 8), torch.tensor(labels))
    assert (len(kept.positives), len(kept.negatives)) == counts


def test_a_share_that_is_whole_is_not_rounded_up() -> None:
    assert math.ceil(0.55 * 100) == 56  # what binary fractions make of it
    labels = torch.arange(50).repeat(2)  # 100 positive pairs
    assert len(mined(HdcOptions(fraction=0.55), rows_of(100, 1), labels).anchors) == 55


def test_duplicates_are_not_mined_from_a_large_batch_in_single_precision() -> None:
    rows = rows_of(20, 2).float().repeat(2, 1)
    labels = torch.arange(20).repeat(2)
    pairs = mined(PairMarginMinerOptions(), rows, labels)
    assert len(pairs.anchors) == 0
    assert len(pairs.negatives) > 0


@pytest.mark.parametrize("options", [MultiSimilarityMinerOptions(), PairMarginMinerOptions(), HdcOptions()])
@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [5, 5, 5, 5], [2]])
def test_one_kind_of_pairs_or_none(options: MinerOptions, labels: list[int]) -> None:
    candidates = pairs_within(torch.tensor(labels))
    pairs = mined(options, rows_of(len(labels), 3), torch.tensor(labels))
    assert both(pairs)[0] <= both(candidates)[0]
    assert both(pairs)[1] <= both(candidates)[1]
    if isinstance(options, MultiSimilarityMinerOptions):
        assert both(pairs) == (set(), set())


@pytest.mark.parametrize("options", [MultiSimilarityMinerOptions(), PairMarginMinerOptions(), HdcOptions()])
def test_half_precision_and_autocast_do_not_reach_the_choice(options: MinerOptions) -> None:
    rows = rows_of(9, 4).bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pairs = mined(options, rows, LABELS)
    assert both(pairs) == both(mined(options, rows.float(), LABELS))
    assert not any(index.requires_grad for index in (pairs.anchors, pairs.negatives))


@pytest.mark.parametrize("fraction", [0.0, 1.5])
def test_a_fraction_outside_of_what_it_can_be_is_refused(fraction: float) -> None:
    with pytest.raises(ValidationError, match="fraction"):
        HdcOptions(fraction=fraction)


@pytest.mark.parametrize(
    ("bound", "value"),
    [("positive_above", -0.1), ("positive_above", 2.1), ("negative_below", -0.1), ("negative_below", 2.1)],
)
def test_a_bound_that_no_distance_of_unit_rows_reaches_is_refused(bound: str, value: float) -> None:
    with pytest.raises(ValidationError, match=bound):
        PairMarginMinerOptions.model_validate({bound: value})
    PairMarginMinerOptions(positive_above=2, negative_below=2)
