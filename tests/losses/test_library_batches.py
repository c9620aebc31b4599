from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sfora_ray.losses import FastApOptions, NPairsOptions, Objective
from sfora_ray.losses.base import LossOptions
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor

LABELS = [4, 1, 4, 0, 1, 4, 7, 1, 4]


def made(options: LossOptions) -> Objective:
    return options.build(dim=4, num_classes=9, generator=torch_generator(0))


def drawn(count: int, seed: int) -> Tensor:
    return torch.randn(count, 4, dtype=torch.float64, generator=torch_generator(seed))


def check_reference(file: str, name: str, options: LossOptions) -> None:
    case = load_case(file, name)
    rows = tensor(case, "in/X", grad=True)
    loss = made(options)(rows, tensor(case, "in/labels"))
    loss.backward()
    assert_close(loss, case["out/loss"])
    assert rows.grad is not None
    assert_close(rows.grad, case["out/grad_X"])


@pytest.mark.parametrize("name", ["c0_bins10", "c0_bins20", "c1_bins10", "c2_bins10", "c2_bins20"])
def test_fast_ap_equals_the_reference(name: str) -> None:
    check_reference("pml_fastap", name, FastApOptions(bins=int(load_case("pml_fastap", name)["hp/num_bins"])))


@pytest.mark.parametrize("name", ["c0_default", "c0_raw", "c1_default", "c2_default", "c2_raw"])
def test_n_pairs_equals_the_reference(name: str) -> None:
    normalize = bool(load_case("pml_npairs", name)["hp/normalize"])
    check_reference("pml_npairs", name, NPairsOptions(normalize=normalize))


def slow_fast_ap(rows: Tensor, labels: list[int], bins: int) -> float:
    unit = rows / rows.norm(dim=1, keepdim=True)
    width, losses = 4 / bins, []
    for i, label in enumerate(labels):
        others = [j for j in range(len(labels)) if j != i]
        positives = sum(labels[j] == label for j in others)
        total = total_positive = precision = 0.0
        for edge in range(bins + 1):
            share = {
                j: max(0.0, 1 - abs(float((unit[i] - unit[j]).pow(2).sum()) - edge * width) / width) for j in others
            }
            near = sum(value for j, value in share.items() if labels[j] == label)
            total, total_positive = total + sum(share.values()), total_positive + near
            precision += near * total_positive / total if total > 0 else 0.0
        losses += [1 - precision / positives] if positives else []
    return sum(losses) / len(losses)


@pytest.mark.parametrize("bins", [3, 10])
def test_fast_ap_equals_slow_loops(bins: int) -> None:
    rows = drawn(9, 1)
    truth = slow_fast_ap(rows, LABELS, bins)
    assert made(FastApOptions(bins=bins))(rows, torch.tensor(LABELS)).item() == pytest.approx(truth, rel=1e-12)


def slow_n_pairs(rows: Tensor, labels: list[int]) -> float:
    pairs = []
    for label in sorted(set(labels)):
        members = [i for i, y in enumerate(labels) if y == label]
        pairs += [(members[0], members[1])] if len(members) > 1 else []
    losses = []
    for anchor, positive in pairs:
        own = float(rows[anchor] @ rows[positive])
        rivals = [float(rows[anchor] @ rows[other]) for _, other in pairs if other != positive]
        losses.append(math.log(1 + sum(math.exp(rival - own) for rival in rivals)))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("normalize", [False, True])
def test_n_pairs_equals_slow_loops(normalize: bool) -> None:
    rows = drawn(9, 2) * 2
    truth = slow_n_pairs(rows / rows.norm(dim=1, keepdim=True) if normalize else rows, LABELS)
    loss = made(NPairsOptions(normalize=normalize))(rows, torch.tensor(LABELS))
    assert loss.item() == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("options", [FastApOptions(), NPairsOptions(), NPairsOptions(normalize=False)])
def test_no_two_images_of_a_class_is_a_loss_of_zero_that_still_has_a_gradient(options: LossOptions) -> None:
    rows = drawn(8, 3).requires_grad_()
    loss = made(options)(rows, torch.tensor([0, 10**9, 2 * 10**9, 3, 4, 5, 6, 7]))
    loss.backward()
    assert loss.item() == 0
    assert rows.grad is not None
    assert not rows.grad.any()


@pytest.mark.parametrize("options", [FastApOptions(), NPairsOptions(), NPairsOptions(normalize=False)])
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_nothing_is_computed_in_half_precision(options: LossOptions, half: torch.dtype) -> None:
    rows, objective = drawn(9, 4).to(half), made(options)
    with torch.autocast("cpu", dtype=half):
        loss = objective(rows, torch.tensor(LABELS))
    assert loss.dtype == torch.float32
    assert torch.equal(loss, objective(rows.float(), torch.tensor(LABELS)))


@pytest.mark.parametrize("options", [FastApOptions(), NPairsOptions(), NPairsOptions(normalize=False)])
def test_gradcheck(options: LossOptions) -> None:
    rows = drawn(6, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: made(options)(x, torch.tensor([0, 1, 0, 2, 1, 0])), (rows,))
