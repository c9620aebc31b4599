from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor

from sfora_ray.losses import (
    ContrastiveOptions,
    LossOptions,
    MultiSimilarityOptions,
    SupConOptions,
    TupleObjective,
)
from sfora_ray.randomness import torch_generator
from sfora_ray.tuples import Pairs, pairs_between, pairs_within
from tests.losses.reference import assert_close, load_case, tensor, unit


def made(options: LossOptions) -> TupleObjective:
    objective = options.build(dim=4, num_classes=9, generator=torch_generator(0))
    assert isinstance(objective, TupleObjective)
    return objective


def contrastive_of(case: dict[str, Any]) -> ContrastiveOptions:
    return ContrastiveOptions(
        distance="cosine" if str(case["hp/distance"]) == "cosine" else "euclidean",
        positive_margin=float(case["hp/pos_margin"]),
        negative_margin=float(case["hp/neg_margin"]),
    )


def multi_similarity_of(case: dict[str, Any]) -> MultiSimilarityOptions:
    return MultiSimilarityOptions(
        alpha=float(case["hp/alpha"]), beta=float(case["hp/beta"]), base=float(case["hp/base"])
    )


def supcon_of(case: dict[str, Any]) -> SupConOptions:
    return SupConOptions(temperature=float(case["hp/temperature"]))


CONTRASTIVE = (
    "c0_default c0_m c0_cosine c0_pairmargin c1_default c1_m c1_pairmargin c2_default c2_m c2_cosine c2_pairmargin"
)
SIMILARITY = "c0_default c0_b c0_miner c0_miner0.3 c1_default c1_b c1_miner0.3 c2_default c2_b c2_miner c2_miner0.3"
CASES = [
    *(("pml_contrastive", name, contrastive_of) for name in CONTRASTIVE.split()),
    *(("pml_multisimilarity", name, multi_similarity_of) for name in SIMILARITY.split()),
    *(("pml_supcon", name, supcon_of) for name in ["c0_t0.1", "c0_t0.07", "c1_t0.1", "c2_t0.1", "c2_t0.07"]),
]


@pytest.mark.parametrize(("file", "name", "options_of"), CASES)
def test_loss_and_gradient_equal_the_reference(
    file: str, name: str, options_of: Callable[[dict[str, Any]], LossOptions]
) -> None:
    case = load_case(file, name)
    objective = made(options_of(case))
    rows, labels = tensor(case, "in/X", grad=True), tensor(case, "in/labels")
    if "out/mined_p" in case:
        pairs = Pairs(*(tensor(case, f"out/mined_{key}") for key in ("a1", "p", "a2", "n")))
        loss = objective.compare(rows, rows, pairs)
    else:
        loss = objective(rows, labels)
    torch.autograd.backward(loss)
    assert_close(loss, case["out/loss"])
    assert rows.grad is not None
    assert_close(rows.grad, case["out/grad_X"])


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def slow_contrastive(rows: Tensor, others: Tensor, pairs: Pairs) -> float:
    def distance(i: int, j: int) -> float:
        return float((rows[i] / rows[i].norm() - others[j] / others[j].norm()).norm())

    pulls = [distance(i, j) - 0.3 for i, j in zip(pairs.anchors, pairs.positives, strict=True)]
    pushes = [1.1 - distance(i, j) for i, j in zip(pairs.negative_anchors, pairs.negatives, strict=True)]
    return mean([x for x in pulls if x > 0]) + mean([x for x in pushes if x > 0])


def by_anchor(rows: Tensor, others: Tensor, pairs: Pairs) -> list[tuple[list[float], list[float]]]:
    def cosines(anchors: Tensor, partners: Tensor, anchor: int) -> list[float]:
        chosen = [int(j) for i, j in zip(anchors, partners, strict=True) if int(i) == anchor]
        return [float(rows[anchor] @ others[j] / (rows[anchor].norm() * others[j].norm())) for j in chosen]

    return [
        (cosines(pairs.anchors, pairs.positives, i), cosines(pairs.negative_anchors, pairs.negatives, i))
        for i in range(len(rows))
    ]


def slow_multi_similarity(rows: Tensor, others: Tensor, pairs: Pairs) -> float:
    return mean(
        [
            math.log(1 + sum(math.exp(-3 * (s - 0.4)) for s in near)) / 3
            + math.log(1 + sum(math.exp(20 * (s - 0.4)) for s in far)) / 20
            for near, far in by_anchor(rows, others, pairs)
        ]
    )


def slow_supcon(rows: Tensor, others: Tensor, pairs: Pairs) -> float:
    losses = []
    for near, far in by_anchor(rows, others, pairs):
        whole = sum(math.exp(s / 0.2) for s in near + far)
        losses += [mean([-math.log(math.exp(s / 0.2) / whole) for s in near])] if near else []
    return mean(losses)


SLOW = [
    (ContrastiveOptions(positive_margin=0.3, negative_margin=1.1), slow_contrastive),
    (MultiSimilarityOptions(alpha=3, beta=20, base=0.4), slow_multi_similarity),
    (SupConOptions(temperature=0.2), slow_supcon),
]
KINDS = [options for options, _ in SLOW]
LABELS = torch.tensor([4, 1, 4, 0, 1, 4, 7, 1, 4])


def drawn(count: int, seed: int) -> Tensor:
    return torch.randn(count, 4, dtype=torch.float64, generator=torch_generator(seed)) * 3


@pytest.mark.parametrize(("options", "slow"), SLOW)
def test_a_batch_of_unequal_classes_equals_slow_loops(
    options: LossOptions, slow: Callable[[Tensor, Tensor, Pairs], float]
) -> None:
    rows = drawn(9, 1)
    truth = slow(rows, rows, pairs_within(LABELS))
    assert made(options)(rows, LABELS).item() == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize(("options", "slow"), SLOW)
def test_two_sets_of_rows_equal_slow_loops_and_both_get_a_gradient(
    options: LossOptions, slow: Callable[[Tensor, Tensor, Pairs], float]
) -> None:
    rows, others = drawn(9, 1).requires_grad_(), drawn(5, 2).requires_grad_()
    pairs = pairs_between(LABELS, torch.tensor([1, 4, 4, 8, 0]))
    loss = made(options).compare(rows, others, pairs)
    torch.autograd.backward(loss)
    assert loss.item() == pytest.approx(slow(rows.detach(), others.detach(), pairs), rel=1e-12)
    assert rows.grad is not None
    assert others.grad is not None
    assert rows.grad.abs().max().item() > 0
    assert others.grad.abs().max().item() > 0


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_nothing_is_computed_in_half_precision(options: LossOptions, half: torch.dtype) -> None:
    rows, objective = drawn(9, 1).to(half), made(options)
    with torch.autocast("cpu", dtype=half):
        loss = objective(rows, LABELS)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, objective(rows.float(), LABELS))


@pytest.mark.parametrize("options", KINDS)
def test_nothing_to_compare_is_a_loss_of_zero_that_still_has_a_gradient(options: LossOptions) -> None:
    rows, others = drawn(3, 1).requires_grad_(), drawn(2, 2).requires_grad_()
    none = torch.empty(0, dtype=torch.int64)
    loss = made(options).compare(rows, others, Pairs(none, none, none, none))
    torch.autograd.backward(loss)
    assert loss.item() == 0
    assert rows.grad is not None
    assert not rows.grad.any()
    assert others.grad is not None
    assert not others.grad.any()


@pytest.mark.parametrize(("options", "slow"), SLOW)
def test_a_lone_pair_of_each_kind_counts(options: LossOptions, slow: Callable[[Tensor, Tensor, Pairs], float]) -> None:
    rows, one = drawn(4, 3), torch.tensor([1])
    pairs = Pairs(one, torch.tensor([3]), one, torch.tensor([0]))
    truth = slow(rows, rows, pairs)
    assert truth > 0
    assert made(options).compare(rows, rows, pairs).item() == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("options", KINDS)
def test_labels_are_only_compared_with_each_other(options: LossOptions) -> None:
    rows = drawn(9, 1)
    far_apart = torch.tensor([0, 10**9, 0, 5, 10**9, 0, 2 * 10**9, 10**9, 0])
    assert torch.equal(made(options)(rows, far_apart), made(options)(rows, LABELS))


@pytest.mark.parametrize(
    "options", [*KINDS, ContrastiveOptions(distance="cosine", positive_margin=0.9, negative_margin=0.6)]
)
def test_gradcheck(options: LossOptions) -> None:
    rows = drawn(6, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: made(options)(x, torch.tensor([0, 1, 0, 2, 1, 0])), (rows,))


def test_anchors_without_a_partner_are_left_out_of_supcon() -> None:
    loss = made(SupConOptions(temperature=0.1))(unit(0, 60, 90, 200), torch.tensor([0, 1, 1, 3]))
    assert loss.item() == pytest.approx(0.0127899, abs=2e-7)


@pytest.mark.parametrize(
    ("anchors", "positives", "negative_anchors", "negatives"),
    [([0, 0, 3], [1, 2, 0], [], []), ([0, 0], [1, 2], [5], [4]), ([0, 0], [1, 2], [0, 5], [4, 1])],
)
def test_positives_of_supcon_repel_each_other_without_a_negative(
    anchors: list[int], positives: list[int], negative_anchors: list[int], negatives: list[int]
) -> None:
    rows = drawn(6, 8).requires_grad_()
    pairs = Pairs(
        *(torch.tensor(rows, dtype=torch.int64) for rows in (anchors, positives, negative_anchors, negatives))
    )
    loss = made(SupConOptions(temperature=0.2)).compare(rows, rows, pairs)
    torch.autograd.backward(loss)
    assert loss.item() == pytest.approx(slow_supcon(rows.detach(), rows.detach(), pairs), rel=1e-12)
    assert rows.grad is not None
    assert rows.grad.abs().max().item() > 1e-3


def test_supcon_keeps_anchors_whose_loss_rounds_to_nothing_in_its_mean() -> None:
    labels = torch.arange(15).repeat(2)
    rows = (F.one_hot(labels, 15) + 0.02 * torch.randn(30, 15, generator=torch_generator(9))).float()
    rows[:2] += rows[2:4]  # two classes come close
    rows.requires_grad_()
    loss = made(SupConOptions(temperature=0.04))(rows, labels)
    torch.autograd.backward(loss)
    exact = rows.detach().double()
    units = F.normalize(exact)
    logits = (units @ units.T / 0.04).fill_diagonal_(-math.inf)
    partner = torch.arange(30).roll(15)
    of_anchor = logits.logsumexp(1) - logits[torch.arange(30), partner]
    assert (of_anchor < 6e-8).sum().item() > 5
    assert loss.item() == pytest.approx(of_anchor.mean().item(), rel=1e-5)


def test_contrastive_without_a_violation_is_exactly_zero() -> None:
    rows = unit(0, 0, 180, 180).requires_grad_()
    loss = made(ContrastiveOptions())(rows, torch.tensor([0, 0, 1, 1]))
    torch.autograd.backward(loss)
    assert loss.item() == 0
    assert rows.grad is not None
    assert not rows.grad.any()


def test_duplicates_do_not_dilute_the_mean_of_a_large_batch() -> None:
    single = F.normalize(drawn(20, 5)).float()
    rows, labels = torch.cat([single, single]), torch.arange(10).repeat(4)
    distances = torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist")
    same = labels[:, None] == labels
    pulls, pushes = distances[same & (distances > 0)], 1 - distances[~same]
    truth = float(pulls.mean() + pushes[pushes > 0].mean())
    assert made(ContrastiveOptions())(rows, labels).item() == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"distance": "cosine"}, "margins are similarities"),
        ({"positive_margin": 1.2}, "must not be above"),
        ({"distance": "dot"}, "euclidean"),
    ],
)
def test_margins_that_contradict_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ContrastiveOptions.model_validate(given)
