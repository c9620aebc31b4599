from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sfora_ray.losses import TripletOptions, TupleObjective
from sfora_ray.randomness import torch_generator
from sfora_ray.tuples import Pairs, Triplets, pairs_between
from tests.losses.reference import assert_close, load_case, tensor, unit


def made(options: TripletOptions) -> TupleObjective:
    return options.build(dim=4, num_classes=9, generator=torch_generator(0))


@pytest.mark.parametrize(
    "name",
    [
        "c0_default",
        "c0_m0.2",
        "c0_swap",
        "c0_smooth",
        "c0_semihard",
        "c1_default",
        "c1_m0.2",
        "c1_smooth",
        "c1_semihard",
        "c2_default",
        "c2_m0.2",
        "c2_swap",
        "c2_smooth",
        "c2_semihard",
    ],
)
def test_loss_and_gradient_equal_the_reference(name: str) -> None:
    case = load_case("pml_triplet", name)
    objective = made(
        TripletOptions(margin=float(case["hp/margin"]), swap=bool(case["hp/swap"]), smooth=bool(case["hp/smooth"]))
    )
    rows = tensor(case, "in/X", grad=True)
    if "out/mined_p" in case:
        triplets = Triplets(*(tensor(case, f"out/mined_{key}") for key in ("a1", "p", "a2")))
        loss = objective.compare(rows, rows, triplets)
    else:
        loss = objective(rows, tensor(case, "in/labels"))
    torch.autograd.backward(loss)
    assert_close(loss, case["out/loss"])
    assert rows.grad is not None
    assert_close(rows.grad, case["out/grad_X"])


def slow_triplet(
    rows: Tensor, others: Tensor, triplets: list[tuple[int, int, int]], *, margin: float, swap: bool, smooth: bool
) -> float:
    def distance(left: Tensor, right: Tensor) -> float:
        return float((left / left.norm() - right / right.norm()).norm())

    losses = []
    for a, p, n in triplets:
        far = distance(rows[a], others[n])
        far = min(far, distance(others[p], others[n])) if swap else far
        violation = distance(rows[a], others[p]) - far + margin
        losses.append(math.log1p(math.exp(violation)) if smooth else violation)
    active = [loss for loss in losses if loss > 0]
    return sum(active) / len(active)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_loss_equals_slow_loops(swap: bool, smooth: bool, same: bool) -> None:
    labels, other_labels = [3, 0, 3, 1, 0, 3, 5], [0, 3, 3, 0, 2]
    rows = torch.randn(7, 4, dtype=torch.float64, generator=torch_generator(1), requires_grad=True)
    others = torch.randn(5, 4, dtype=torch.float64, generator=torch_generator(2), requires_grad=True)
    if same:
        others, other_labels = rows, labels
    triplets = [
        (a, p, n)
        for a in range(7)
        for p in range(len(other_labels))
        for n in range(len(other_labels))
        if labels[a] == other_labels[p] != other_labels[n] and not (same and a == p)
    ]
    objective = made(TripletOptions(margin=0.2, swap=swap, smooth=smooth))
    if same:
        loss = objective(rows, torch.tensor(labels))
    else:
        loss = objective.compare(rows, others, pairs_between(torch.tensor(labels), torch.tensor(other_labels)))
    torch.autograd.backward(loss)
    truth = slow_triplet(rows.detach(), others.detach(), triplets, margin=0.2, swap=swap, smooth=smooth)
    assert loss.item() == pytest.approx(truth, rel=1e-12)
    assert rows.grad is not None
    assert others.grad is not None
    assert others.grad.abs().max().item() > 0


def test_one_triplet_by_hand() -> None:
    rows = unit(0, 60, 90).double()  # distances: 2 sin 30 = 1 and 2 sin 45 = sqrt 2
    loss = made(TripletOptions(margin=0.5))(rows, torch.tensor([1, 1, 0]))
    second = 1 - 2 * math.sin(math.radians(15)) + 0.5
    first = 1 - math.sqrt(2) + 0.5
    assert loss.item() == pytest.approx((first + second) / 2, rel=1e-6)


@pytest.mark.parametrize("swap", [False, True])
def test_no_triplet_is_a_loss_of_zero_that_still_has_a_gradient(swap: bool) -> None:
    rows = torch.randn(3, 4, generator=torch_generator(3), requires_grad=True)
    others = torch.randn(3, 4, generator=torch_generator(4), requires_grad=True)
    one, none = torch.tensor([0]), torch.empty(0, dtype=torch.int64)
    loss = made(TripletOptions(swap=swap)).compare(rows, others, Pairs(one, one, none, none))
    torch.autograd.backward(loss)
    assert loss.item() == 0
    assert rows.grad is not None
    assert others.grad is not None
    assert not rows.grad.any()
    assert not others.grad.any()


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_nothing_is_computed_in_half_precision(half: torch.dtype) -> None:
    rows = torch.randn(6, 4, generator=torch_generator(5)).to(half)
    labels, objective = torch.tensor([0, 1, 0, 1, 2, 2]), made(TripletOptions(margin=0.3))
    with torch.autocast("cpu", dtype=half):
        loss = objective(rows, labels)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, objective(rows.float(), labels))
