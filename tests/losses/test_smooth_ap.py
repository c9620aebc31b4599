from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sfora_ray.losses.smooth_ap import SmoothAp, SmoothApOptions
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor, unit


def built(tau: float = 0.01) -> SmoothAp:
    return SmoothApOptions(tau=tau).build(dim=1, num_classes=1, generator=torch_generator(0))


SOURCES = [("c0_4x4", "off"), ("c1_6x4", "off"), ("c3_dup", "off")]
SOURCES += [(name, "roadmap") for name in ("c0_4x4", "c1_6x4", "c3_dup", "c4_irregular")]


@pytest.mark.parametrize(("name", "source"), SOURCES)
def test_loss_and_gradient_equal_the_reference(name: str, source: str) -> None:
    case = load_case("smoothap", name)
    rows = tensor(case, "in/X", grad=True)
    loss = built(float(case["hp/tau"]))(rows, tensor(case, "in/labels"))
    loss.backward()
    assert_close(loss, case[f"{source}/loss"])
    assert rows.grad is not None
    assert_close(rows.grad, case[f"{source}/grad_X"])


def slow_smooth_ap(rows: Tensor, labels: list[int], tau: float) -> float:
    everyone = range(len(labels))
    cosine = [[float(a @ b / (a.norm() * b.norm())) for b in rows] for a in rows]
    total = 0.0
    for q in everyone:
        positives = [p for p in everyone if labels[p] == labels[q]]
        precisions = []
        for p in positives:
            ahead = {j: 1 / (1 + math.exp(-(cosine[q][j] - cosine[q][p]) / tau)) for j in everyone if j != p}
            precisions.append((1 + sum(ahead[j] for j in positives if j != p)) / (1 + sum(ahead.values())))
        total += sum(precisions) / len(positives)
    return 1 - total / len(labels)


@pytest.mark.parametrize("labels", [[4, 0, 0, 2, 4, 0, 0], [1, 2, 3, 1, 2, 3, 0], [0, 1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("tau", [0.02, 0.3])
def test_loss_equals_slow_loops(labels: list[int], tau: float) -> None:
    rows = torch.randn(7, 3, dtype=torch.float64, generator=torch_generator(1)) * 4
    truth = slow_smooth_ap(rows, labels, tau)
    assert built(tau)(rows, torch.tensor(labels)).item() == pytest.approx(truth, rel=1e-12, abs=1e-15)


def exact_ap(rows: Tensor, labels: Tensor) -> float:
    """Ranked lists, the query's own row first."""
    cosines = torch.nn.functional.normalize(rows) @ torch.nn.functional.normalize(rows).T
    aps = []
    for q in range(len(labels)):
        hits = (labels[cosines[q].argsort(descending=True)] == labels[q]).double()
        precisions = hits.cumsum(0) / torch.arange(1, len(labels) + 1)
        aps.append(float((precisions * hits).sum() / hits.sum()))
    return sum(aps) / len(aps)


@pytest.mark.parametrize("seed", range(5))
def test_a_cold_sigmoid_gives_the_average_precision_of_the_ranked_lists(seed: int) -> None:
    rows = torch.randn(20, 6, dtype=torch.float64, generator=torch_generator(seed))
    labels = torch.randint(0, 5, (20,), generator=torch_generator(seed, "labels"))
    assert 1 - built(1e-6)(rows, labels).item() == pytest.approx(exact_ap(rows, labels), abs=1e-6)


def test_three_rows_by_hand() -> None:
    # From 0 degrees the list is itself, the stranger at 30, the mate at 60: precisions 1 and 2/3.
    # From 60: itself, the stranger, the mate likewise. The stranger finds only itself.
    loss = built(1e-3)(unit(0, 60, 30), torch.tensor([0, 0, 1]))
    assert loss.item() == pytest.approx(1 - (5 / 6 + 5 / 6 + 1) / 3, abs=1e-6)


def test_gradcheck() -> None:
    rows = torch.randn(6, 3, dtype=torch.float64, generator=torch_generator(4), requires_grad=True)
    labels = torch.tensor([0, 0, 3, 1, 1, 0])
    assert torch.autograd.gradcheck(lambda x: built(0.2)(x, labels), (rows,))


def test_one_class_has_nothing_to_rank() -> None:
    rows = torch.randn(4, 3, generator=torch_generator(5), requires_grad=True)
    loss = built()(rows, torch.zeros(4, dtype=torch.int64))
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    assert rows.grad is not None
    assert float(rows.grad.abs().max()) == pytest.approx(0.0, abs=1e-5)


def test_order_of_rows_does_not_matter() -> None:
    rows = torch.randn(12, 5, dtype=torch.float64, generator=torch_generator(8))
    labels = torch.tensor([0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
    shuffled = torch.randperm(12, generator=torch_generator(9))
    assert built()(rows[shuffled], labels[shuffled]).item() == pytest.approx(built()(rows, labels).item(), rel=1e-12)


def test_half_precision_around_it_does_not_reach_the_sigmoid() -> None:
    rows, labels = unit(0, 10, 80, 95), torch.tensor([0, 1, 1, 0])
    plain = built()(rows, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(built()(rows, labels), plain)
        assert built()(rows.bfloat16(), labels).dtype == torch.float32
