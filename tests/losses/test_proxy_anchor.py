from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sfora_ray.losses.library import ProxyAnchor, ProxyAnchorOptions
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor, unit


def with_proxies(proxies: Tensor, options: ProxyAnchorOptions | None = None) -> ProxyAnchor:
    num_classes, dim = proxies.shape
    objective = (options or ProxyAnchorOptions()).build(dim=dim, num_classes=num_classes, generator=torch_generator(0))
    objective = objective.to(proxies.dtype)
    with torch.no_grad():
        objective.proxies.copy_(proxies)
    return objective


@pytest.mark.parametrize("name", ["c0", "c1", "c3_single_class"])
@pytest.mark.parametrize(("source", "rtol"), [("off", 1e-8), ("pml", 1e-9)])
def test_loss_and_gradients_equal_the_reference(name: str, source: str, rtol: float) -> None:
    case = load_case("proxy_anchor", name)
    options = ProxyAnchorOptions(alpha=float(case["hp/alpha"]), delta=float(case["hp/margin"]))
    objective = with_proxies(tensor(case, "in/proxies"), options)
    rows = tensor(case, "in/X", grad=True)
    loss = objective(rows, tensor(case, "in/labels"))
    loss.backward()
    assert_close(loss, case[f"{source}/loss"], rtol=rtol)
    assert rows.grad is not None
    assert objective.proxies.grad is not None
    assert_close(rows.grad, case[f"{source}/grad_X"], rtol=rtol, atol=rtol)
    assert_close(objective.proxies.grad, case[f"{source}/grad_proxies"], rtol=rtol, atol=rtol)


def slow_proxy_anchor(rows: Tensor, labels: list[int], proxies: Tensor, *, alpha: float, delta: float) -> float:
    positive_terms, negative_terms = [], []
    for p, proxy in enumerate(proxies.double()):
        cosines = [float(row @ proxy / (row.norm() * proxy.norm())) for row in rows.double()]
        near = [math.exp(-alpha * (s - delta)) for s, y in zip(cosines, labels, strict=True) if y == p]
        far = [math.exp(alpha * (s + delta)) for s, y in zip(cosines, labels, strict=True) if y != p]
        positive_terms += [math.log(1 + sum(near))] if near else []
        negative_terms += [math.log(1 + sum(far))]
    return sum(positive_terms) / len(positive_terms) + sum(negative_terms) / len(proxies)


@pytest.mark.parametrize("labels", [[4, 0, 0, 2, 4, 0], [1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 0]])
def test_loss_equals_slow_loops(labels: list[int]) -> None:
    rows = torch.randn(6, 3, dtype=torch.float64, generator=torch_generator(1)) * 4
    proxies = torch.randn(5, 3, dtype=torch.float64, generator=torch_generator(2))
    options = ProxyAnchorOptions(alpha=7.0, delta=0.2)
    truth = slow_proxy_anchor(rows, labels, proxies, alpha=7.0, delta=0.2)
    assert with_proxies(proxies, options)(rows, torch.tensor(labels)).item() == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_around_it_does_not_reach_the_exponentials(half: torch.dtype) -> None:
    objective = with_proxies(unit(5, 85, 170))
    rows, labels = unit(0, 10, 80, 95), torch.tensor([0, 0, 1, 1])
    with torch.autocast("cpu", dtype=half):
        loss = objective(rows, labels)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(11.48376, abs=2e-5)
    with torch.autocast("cpu", dtype=half):
        rounded = objective(rows.to(half), labels)
    assert rounded.dtype == objective.proxies.dtype == torch.float32
    assert torch.isfinite(rounded)


def test_gradcheck() -> None:
    objective = with_proxies(torch.randn(4, 3, dtype=torch.float64, generator=torch_generator(3)))
    rows = torch.randn(5, 3, dtype=torch.float64, generator=torch_generator(4), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: objective(x, torch.tensor([0, 0, 3, 1, 1])), (rows,))


def test_initial_proxies_have_the_published_length_and_leave_the_global_stream_alone() -> None:
    before = torch.get_rng_state()
    kaiming = ProxyAnchorOptions().build(dim=512, num_classes=100, generator=torch_generator(5))
    unit_rows = ProxyAnchorOptions(init="unit").build(dim=512, num_classes=100, generator=torch_generator(5))
    assert torch.equal(before, torch.get_rng_state())
    assert kaiming.proxies.norm(dim=1).mean().item() == pytest.approx(math.sqrt(2 * 512 / 100), rel=0.01)
    torch.testing.assert_close(unit_rows.proxies.norm(dim=1), torch.ones(100))


@pytest.mark.parametrize("decay", [True, False])
def test_proxies_are_one_group_at_their_own_rate(decay: bool) -> None:
    objective = ProxyAnchorOptions(proxy_decay=decay).build(dim=2, num_classes=3, generator=torch_generator(6))
    (group,) = objective.parameter_groups(base_lr=123.0)
    assert (group.lr, group.decays, group.warms_up) == (1e-2, decay, True)
    assert group.parameters == (objective.proxies,)
