from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sfora_ray.errors import ConfigError
from sfora_ray.losses.hist import Hist, HistOptions
from sfora_ray.losses.hypergraph import (
    class_distances,
    clip_published,
    clip_reviving,
    distribution_loss,
    incidence,
    propagation,
)
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor

CASES = ("c0", "c1", "c3_underflow")
WEIGHTS = {
    "means": "means",
    "log_vars": "log_variances",
    "theta1_w": "network.theta1.weight",
    "theta1_b": "network.theta1.bias",
    "bn_w": "network.norm.weight",
    "bn_b": "network.norm.bias",
    "theta2_w": "network.theta2.weight",
    "theta2_b": "network.theta2.bias",
}


def reference_objective(case: dict[str, Any], hgnn_input: str) -> Hist:
    num_classes, dim = case["in/means"].shape
    options = HistOptions.model_validate(
        {
            "tau": float(case["hp/tau"]),
            "alpha": float(case["hp/alpha"]),
            "lambda_s": float(case["hp/lambda_s"]),
            "hidden": len(case["in/bn_w"]),
            "hgnn_input": hgnn_input,
        }
    )
    objective = options.build(dim=dim, num_classes=num_classes, generator=torch_generator(0)).double()
    state = objective.state_dict()
    state.update({ours: tensor(case, f"in/{theirs}") for theirs, ours in WEIGHTS.items()})
    objective.load_state_dict(state)
    return objective


@pytest.mark.parametrize("name", CASES)
def test_pieces_equal_the_reference(name: str) -> None:
    case = load_case("hist", name)
    labels = tensor(case, "in/labels")
    rows = F.normalize(tensor(case, "in/X"))
    distances = class_distances(rows, tensor(case, "in/means"), clip_published(tensor(case, "in/log_vars")))
    memberships = incidence(distances, labels, alpha=float(case["hp/alpha"]))
    assert_close(distances, case["off/distance"])
    assert_close(memberships, case["off/H"])
    assert_close(propagation(memberships), case["off/G"])


@pytest.mark.parametrize("name", CASES)
def test_logits_and_running_statistics_equal_the_reference(name: str) -> None:
    case = load_case("hist", name)
    objective = reference_objective(case, "raw")
    objective.network.norm.reset_running_stats()
    logits = objective.network(tensor(case, "in/X"), tensor(case, "off/G"))
    assert_close(logits, case["off/logits"])
    assert_close(F.cross_entropy(logits, tensor(case, "in/labels")), case["off/ce_loss"])
    buffers = dict(objective.network.norm.named_buffers())
    assert_close(buffers["running_mean"], case["off/bn_running_mean"])
    assert_close(buffers["running_var"], case["off/bn_running_var"])


@pytest.mark.parametrize(
    ("name", "hgnn_input", "source"),
    [
        ("c0", "raw", "off"),
        ("c1", "raw", "off"),
        *[(name, "normalized", "port") for name in CASES],
    ],
)
def test_loss_and_every_gradient_equal_the_reference(name: str, hgnn_input: str, source: str) -> None:
    case = load_case("hist", name)
    objective = reference_objective(case, hgnn_input)
    rows = tensor(case, "in/X", grad=True)
    loss = objective(rows, tensor(case, "in/labels"))
    loss.backward()
    assert_close(loss, case[f"{source}/total"])
    assert rows.grad is not None
    assert_close(rows.grad, case[f"{source}/grad_total/X"], rtol=1e-8, atol=1e-9)
    for theirs, ours in WEIGHTS.items():
        gradient = objective.get_parameter(ours).grad
        assert gradient is not None
        expected = case[f"{source}/grad_total/{theirs}"]
        # At exactly 0 and 6 the two programs chose different subgradients: relu6 0, clamp 1.
        values = tensor(case, f"in/{theirs}")
        inside = (values != 0) & (values != 6) if ours == "log_variances" else torch.ones_like(values)
        assert_close(inside * gradient, inside.numpy() * expected, rtol=1e-8, atol=1e-9)


def test_rows_whose_probability_underflows_stay_in_the_mean() -> None:
    case = load_case("hist", "c3_underflow")
    loss = distribution_loss(tensor(case, "off/distance"), tensor(case, "in/labels"), tau=float(case["hp/tau"]))
    assert_close(loss, case["port/dist_loss"])
    assert float(loss) > 30 * float(case["off/dist_loss"])


def slow_distances(rows: Tensor, means: Tensor, log_variances: Tensor) -> Tensor:
    result = torch.zeros(len(rows), len(means), dtype=torch.float64)
    for i, row in enumerate(rows.double().tolist()):
        for c, mean in enumerate(means.double().tolist()):
            length = math.sqrt(sum(value * value for value in mean))
            for f, value in enumerate(row):
                variance = math.exp(min(max(float(log_variances[c, f]), 0.0), 6.0))
                result[i, c] += (value - mean[f] / length) ** 2 / variance
    return result


def slow_hist(objective: Hist, rows: Tensor, labels: Tensor) -> float:
    unit_rows = rows.double() / rows.double().norm(dim=1, keepdim=True)
    distances = slow_distances(unit_rows, objective.means.detach(), objective.log_variances.detach())
    first = 0.0
    for i, label in enumerate(labels.tolist()):
        weights = [math.exp(-objective.options.tau * float(value)) for value in distances[i]]
        first -= math.log(weights[label] / sum(weights)) / len(labels)
    present = sorted(set(labels.tolist()))
    h = torch.zeros(len(labels), len(present), dtype=torch.float64)
    for i, label in enumerate(labels.tolist()):
        for e, other in enumerate(present):
            distance = float(distances[i, other])
            h[i, e] = 1.0 if label == other else math.exp(-objective.options.alpha * distance)
    g = torch.zeros(len(labels), len(labels), dtype=torch.float64)
    for i in range(len(labels)):
        for j in range(len(labels)):
            shared = sum(float(h[i, e] * h[j, e] / h[:, e].sum()) for e in range(len(present)))
            g[i, j] = shared / math.sqrt(float(h[i].sum() * h[j].sum()))
    net = objective.network
    inner = g @ (unit_rows @ net.theta1.weight.detach().T + net.theta1.bias.detach())
    inner = (inner - inner.mean(dim=0)) / (inner.var(dim=0, correction=0) + net.norm.eps).sqrt()
    inner = torch.where(inner > 0, inner, 0.1 * inner)
    logits = g @ (inner @ net.theta2.weight.detach().T + net.theta2.bias.detach())
    probabilities = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
    second = -sum(math.log(float(probabilities[i, label])) for i, label in enumerate(labels.tolist()))
    return first + objective.options.lambda_s * second / len(labels)


def small_objective(**changes: Any) -> Hist:
    options = HistOptions.model_validate({"hidden": 5, "tau": 3.0, "alpha": 0.7, "lambda_s": 0.4, **changes})
    return options.build(dim=4, num_classes=6, generator=torch_generator(1)).double()


@pytest.mark.parametrize("labels", [[5, 0, 0, 3, 5, 0, 1], [2, 2, 2, 2, 2, 2, 2], [0, 1, 2, 3, 4, 5, 0]])
def test_loss_equals_slow_loops(labels: list[int]) -> None:
    objective = small_objective()
    rows = torch.randn(7, 4, dtype=torch.float64, generator=torch_generator(2)) * 3
    truth = slow_hist(objective, rows, torch.tensor(labels))
    assert objective(rows, torch.tensor(labels)).item() == pytest.approx(truth, rel=1e-12)


def test_one_dimension_by_hand() -> None:
    rows, means = torch.tensor([[2.0]]), torch.tensor([[1.0], [-3.0]])
    distances = class_distances(F.normalize(rows), means, torch.tensor([[0.0], [math.log(4)]]))
    torch.testing.assert_close(distances, torch.tensor([[0.0, 1.0]]))
    assert float(distribution_loss(distances, torch.tensor([1]), tau=2.0)) == pytest.approx(
        2 + math.log(1 + math.exp(-2))
    )


def test_order_of_rows_and_their_length_do_not_matter() -> None:
    objective = small_objective()
    rows = torch.randn(7, 4, dtype=torch.float64, generator=torch_generator(3))
    labels = torch.tensor([1, 1, 0, 4, 4, 2, 0])
    order = torch.tensor([3, 1, 6, 0, 2, 5, 4])
    lengths = torch.arange(1.0, 8.0, dtype=torch.float64)[:, None]
    torch.testing.assert_close(objective((lengths * rows)[order], labels[order]), objective(rows, labels))


def test_gradcheck() -> None:
    objective = small_objective(log_variance_init="alive")
    rows = torch.randn(5, 4, dtype=torch.float64, generator=torch_generator(4), requires_grad=True)
    labels = torch.tensor([0, 0, 3, 1, 3])
    assert torch.autograd.gradcheck(lambda x: objective(x, labels), (rows,))
    assert torch.autograd.gradcheck(
        lambda v: class_distances(rows.detach(), objective.means.detach(), v),
        (objective.log_variances.detach().clone().requires_grad_(),),
    )


def test_a_batch_of_one_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"objective hist: .* at least 2 images .* got 1\. Raise"):
        small_objective()(torch.ones(1, 4, dtype=torch.float64), torch.tensor([0]))


def test_dead_log_variances_are_counted_and_can_be_avoided() -> None:
    published = HistOptions(hidden=4).build(dim=64, num_classes=40, generator=torch_generator(5))
    alive = HistOptions(hidden=4, log_variance_init="alive").build(dim=64, num_classes=40, generator=torch_generator(5))
    assert published.dead_variance_share == pytest.approx(0.5, abs=0.05)
    assert alive.dead_variance_share == 0.0
    assert published.diagnostics() == {"dead_variance_share": published.dead_variance_share}
    torch.testing.assert_close(alive.log_variances, published.log_variances.abs())


@pytest.mark.parametrize(
    ("value", "gradient", "passed"),
    [(-1, -2, -2), (-1, 2, 0), (0, -2, -2), (0, 2, 0), (3, 2, 2), (3, -2, -2), (7, 2, 2), (7, -2, 0)],
)
def test_a_clipped_log_variance_follows_only_what_leads_back(value: float, gradient: float, passed: float) -> None:
    raw = torch.tensor([float(value)], requires_grad=True)
    clipped = clip_reviving(raw)
    torch.autograd.backward(clipped, torch.tensor([float(gradient)]))
    assert clipped.item() == clip_published(raw).item() == min(max(value, 0), 6)
    assert raw.grad is not None
    assert raw.grad.item() == passed


def train_on_noise(objective: Hist, steps: int) -> list[Tensor]:
    groups = objective.parameter_groups(1e-4)
    optimizer = torch.optim.AdamW([{"params": list(g.parameters), "lr": g.lr} for g in groups])
    generator, trail = torch_generator(7), []
    centres = torch.randn(20, 32, generator=generator)
    for _ in range(steps):
        labels = torch.randperm(20, generator=generator)[:8].repeat_interleave(2)
        optimizer.zero_grad()
        objective(centres[labels] + torch.randn(16, 32, generator=generator), labels).backward()
        optimizer.step()
        trail.append(objective.log_variances.detach().clone() > 0)
    return trail


def test_dead_ones_rest_as_published_and_come_back_when_alive() -> None:
    for init, comes_back in (("published", False), ("alive", True)):
        options = HistOptions.model_validate({"hidden": 4, "log_variance_init": init})
        objective = options.build(dim=32, num_classes=20, generator=torch_generator(8))
        trail = train_on_noise(objective, 60)
        revived = sum(int((later & ~sooner).sum()) for sooner, later in pairwise(trail[30:]))
        assert (revived > 0) is comes_back


def test_groups_carry_the_published_rates() -> None:
    groups = {group.name: group for group in small_objective().parameter_groups(1e-4)}
    assert {name: (group.lr, group.decays) for name, group in groups.items()} == {
        "hist.distributions": (0.1, True),
        "hist.network.decay": (pytest.approx(1e-3), True),
        "hist.network.no_decay": (pytest.approx(1e-3), False),
    }


def test_initial_spread_is_that_of_the_paper() -> None:
    objective = HistOptions().build(dim=512, num_classes=100, generator=torch_generator(6))
    assert objective.means.std().item() == pytest.approx(math.sqrt(2 / 100), rel=0.02)
    assert objective.network.theta1.weight.abs().max().item() <= 512**-0.5
