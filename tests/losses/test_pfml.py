from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from sfora_ray.losses import pfml
from sfora_ray.losses.pfml import Pfml, PfmlOptions
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor, unit


def with_proxies(proxies: Tensor, proxy_labels: Tensor, **options: Any) -> Pfml:
    objective = PfmlOptions(proxies_per_class=1, **options).build(
        dim=proxies.shape[1], num_classes=len(proxies), generator=torch_generator(0)
    )
    objective = objective.to(proxies.dtype)
    with torch.no_grad():
        objective.proxies.copy_(proxies)
        objective.proxy_labels.copy_(proxy_labels)
    return objective


def far_away(dim: int, **options: Any) -> Pfml:
    """Return an objective whose one proxy, of class 9, stands apart from the rows of a test."""
    proxy = torch.zeros(1, dim, dtype=torch.float64)
    proxy[0, -1] = 1.0
    return with_proxies(proxy, torch.tensor([9]), **options)


@pytest.mark.parametrize("name", ["c0", "c2_close"])
def test_the_port_equals_the_reference(name: str) -> None:
    case = load_case("pfml_port", name)
    objective = with_proxies(
        tensor(case, "in/proxies"),
        tensor(case, "in/proxy_labels"),
        reading="port",
        delta=float(case["hp/delta"]),
        alpha=float(case["hp/alpha"]),
    )
    rows = tensor(case, "in/X", grad=True)
    loss = objective(rows, tensor(case, "in/labels"))
    loss.backward()
    assert_close(loss, case["out/loss"])
    assert rows.grad is not None
    assert objective.proxies.grad is not None
    assert_close(rows.grad, case["out/grad_X"])
    assert_close(objective.proxies.grad, case["out/grad_proxies"])


def slow_energy(points: Tensor, labels: list[int], delta: float, alpha: float) -> float:
    energy = 0.0
    for i, here in enumerate(points):
        for j, there in enumerate(points):
            if i == j:
                continue
            distance = float((here / here.norm() - there / there.norm()).norm())
            if labels[i] == labels[j]:
                energy += -1 / delta**alpha if distance < delta else -1 / distance**alpha
            else:
                energy += 1 / distance**alpha if distance < delta else 1 / delta**alpha
    return energy


@pytest.mark.parametrize("labels", [[4, 0, 0, 2, 4, 0], [1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 0]])
@pytest.mark.parametrize(("delta", "alpha"), [(0.2, 4.0), (0.9, 2.5), (1.6, 1.0)])
def test_the_papers_energy_equals_slow_loops(labels: list[int], delta: float, alpha: float) -> None:
    rows = torch.randn(6, 3, dtype=torch.float64, generator=torch_generator(1)) * 4
    proxies = torch.randn(7, 3, dtype=torch.float64, generator=torch_generator(2))
    proxy_labels = [3, 0, 1, 0, 4, 2, 3]
    objective = with_proxies(proxies, torch.tensor(proxy_labels), delta=delta, alpha=alpha)
    truth = slow_energy(torch.cat([rows, proxies]), labels + proxy_labels, delta, alpha)
    assert objective(rows, torch.tensor(labels)).item() == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("pairs_at_once", [1, 40, 150])
def test_many_points_are_taken_a_few_at_a_time(pairs_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = torch.tensor([0, 2, 2, 1])
    results = []
    for limit in (pfml.PAIRS_AT_ONCE, pairs_at_once):
        monkeypatch.setattr(pfml, "PAIRS_AT_ONCE", limit)
        objective = PfmlOptions(proxies_per_class=3, delta=0.8).build(
            dim=3, num_classes=3, generator=torch_generator(5)
        )
        objective.double()
        rows = torch.randn(4, 3, dtype=torch.float64, generator=torch_generator(6), requires_grad=True)
        loss = objective(rows, labels)
        loss.backward()
        assert rows.grad is not None
        assert objective.proxies.grad is not None
        results.append((loss.detach(), rows.grad, objective.proxies.grad))
    for whole, parts in zip(*results, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-12)


def test_two_rows_by_hand() -> None:
    rows = torch.tensor([[1.0, 0, 0, 0], [0.6, 0.8, 0, 0]], dtype=torch.float64)  # Squared distance .8.
    objective = far_away(4, delta=0.5, alpha=2.0)
    apart = 4 * 4.0  # Both rows and the proxy, both ways: 1 / delta**2 each.
    assert objective(rows, torch.tensor([0, 0])).item() == pytest.approx(apart - 2 / 0.8)
    assert objective(rows, torch.tensor([0, 1])).item() == pytest.approx(apart + 2 * 4.0)


@pytest.mark.parametrize(
    ("labels", "degrees", "feels"),
    [([0, 0], 5, False), ([0, 0], 60, True), ([0, 1], 5, True), ([0, 1], 60, False)],
)
def test_attraction_is_flat_within_delta_and_repulsion_beyond(labels: list[int], degrees: float, feels: bool) -> None:
    rows = torch.cat([unit(0, degrees), torch.zeros(2, 1)], dim=1).double().requires_grad_()
    far_away(3, delta=0.2)(rows, torch.tensor(labels)).backward()
    assert rows.grad is not None
    assert (float(rows.grad.abs().max()) > 1e-3) is feels
    if feels:
        moved = rows.detach() - 1e-3 * torch.nn.functional.normalize(rows.grad)
        cosine = float(torch.nn.functional.cosine_similarity(moved[0], moved[1], dim=0))
        nearer = cosine > math.cos(math.radians(degrees))
        assert nearer is (labels[0] == labels[1])


def test_gradcheck() -> None:
    proxies = torch.randn(4, 3, dtype=torch.float64, generator=torch_generator(3))
    objective = with_proxies(proxies, torch.tensor([0, 1, 2, 3]), delta=0.7, alpha=2.0)
    rows = torch.randn(5, 3, dtype=torch.float64, generator=torch_generator(4), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: objective(x, torch.tensor([0, 0, 3, 1, 1])), (rows,))


@pytest.mark.parametrize("alpha", [4.0, 6.0])
def test_rows_of_two_classes_at_one_point_stay_finite(alpha: float) -> None:
    rows = torch.ones(4, 3, requires_grad=True)
    objective = PfmlOptions(alpha=alpha).build(dim=3, num_classes=2, generator=torch_generator(7))
    loss = objective(rows, torch.tensor([0, 0, 1, 1]))
    loss.backward()
    assert torch.isfinite(loss)
    assert rows.grad is not None
    assert torch.isfinite(rows.grad).all()


def test_diagnostics_tell_a_collapse() -> None:
    objective = PfmlOptions(proxies_per_class=2).build(dim=8, num_classes=40, generator=torch_generator(8))
    labels = torch.arange(9)
    objective(torch.eye(8)[[0, 1, 2, 3, 4, 5, 6, 7, 0]], labels)
    spread = objective.diagnostics()
    assert spread["row_mean_cosine"] == pytest.approx(2 / 72)
    assert abs(spread["proxy_mean_cosine"]) < 0.05
    assert spread["among_strangers_share"] == pytest.approx(2 / 9)
    with torch.no_grad():
        objective.proxies.copy_(torch.ones(80, 8))
    objective(torch.ones(9, 8), labels)
    assert objective.diagnostics() == pytest.approx(
        {"row_mean_cosine": 1.0, "proxy_mean_cosine": 1.0, "among_strangers_share": 1.0}, abs=1e-5
    )


def test_diagnostics_survive_a_resume() -> None:
    objective = PfmlOptions().build(dim=4, num_classes=2, generator=torch_generator(9))
    objective(torch.randn(6, 4, generator=torch_generator(10)), torch.tensor([0, 0, 0, 1, 1, 1]))
    twin = PfmlOptions().build(dim=4, num_classes=2, generator=torch_generator(11))
    twin.load_state_dict(objective.state_dict())
    assert twin.diagnostics() == objective.diagnostics()


def test_proxies_belong_to_their_classes_and_are_one_group() -> None:
    objective = PfmlOptions(proxies_per_class=2).build(dim=5, num_classes=3, generator=torch_generator(12))
    assert objective.proxy_labels.tolist() == [0, 0, 1, 1, 2, 2]
    torch.testing.assert_close(objective.proxies.norm(dim=1), torch.ones(6))
    (group,) = objective.parameter_groups(base_lr=123.0)
    assert (group.lr, group.decays, group.warms_up) == (5e-2, False, True)


def test_half_precision_around_it_does_not_reach_the_distances() -> None:
    objective = PfmlOptions().build(dim=4, num_classes=2, generator=torch_generator(13))
    rows, labels = torch.randn(6, 4, generator=torch_generator(14)), torch.tensor([0, 0, 0, 1, 1, 1])
    plain = objective(rows, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(objective(rows, labels), plain)
        assert objective(rows.bfloat16(), labels).dtype == torch.float32


def slow_pair(rows: Tensor, delta: float, alpha: float) -> Tensor:
    """Return the energy of two rows of different classes nearer than ``delta``, by the angle between them."""
    first, second = (row / row.norm() for row in rows)
    crossed = torch.linalg.cross(first, second).norm()
    distance = 2 * torch.sin(torch.atan2(crossed, first @ second) / 2)
    assert distance < delta
    return 2 / distance**alpha


@pytest.mark.parametrize("contact", [0.1, 1e-2, 1e-3, 2e-4])
@pytest.mark.parametrize("alpha", [1.0, 4.0])
def test_single_precision_rows_near_contact_have_the_energy_and_gradient_of_the_slow_one(
    contact: float, alpha: float
) -> None:
    axes = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64, generator=torch_generator(15))).Q
    turned = math.cos(contact) * axes[0] + math.sin(contact) * axes[1]
    rows = torch.stack([3 * axes[0], 0.7 * turned]).float().requires_grad_()
    exact = rows.detach().double().requires_grad_()
    truth = slow_pair(exact, 0.2, alpha)
    torch.autograd.backward(truth)
    proxies = -axes[:1].float()  # Of a class of its own, and as far as can be: 4 ordered pairs of flat repulsion.
    loss = with_proxies(proxies, torch.tensor([9]), delta=0.2, alpha=alpha)(rows, torch.tensor([0, 1]))
    loss.backward()
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(truth.item() + 4 / 0.2**alpha, rel=1e-6)
    assert rows.grad is not None
    assert exact.grad is not None
    assert ((rows.grad.double() - exact.grad).norm() / exact.grad.norm()).item() < 1e-5


def test_the_gradient_ends_at_a_distance_of_one_ten_thousandth() -> None:
    labels = torch.tensor([0, 1])
    for contact, feels in ((1.5e-4, True), (0.5e-4, False)):
        rows = torch.tensor([[1.0, 0, 0], [1.0, contact, 0]], requires_grad=True)
        far_away(3).float()(rows, labels).backward()
        assert rows.grad is not None
        assert bool(rows.grad.any()) is feels
