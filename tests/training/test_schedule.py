import math

import pytest
import torch
from torch import nn

from sfora_ray.config.pack import OptimizerOptions, ScheduleOptions
from sfora_ray.parameters import ParameterGroup
from sfora_ray.training.optimizer import build_optimizer, clip_gradients, set_rates
from sfora_ray.training.schedule import apply_warmup, rate_factor

CPU = torch.device("cpu")


def two_groups() -> tuple[ParameterGroup, ParameterGroup]:
    backbone, head = (nn.Parameter(torch.ones(2)) for _ in range(2))
    return (
        ParameterGroup("backbone", (backbone,), 1e-3, True, False),
        ParameterGroup("head", (head,), 1e-2, False, True),
    )


def backward(groups: tuple[ParameterGroup, ...]) -> None:
    learning = [p for group in groups for p in group.parameters if p.requires_grad]
    torch.autograd.backward(torch.stack([parameter.sum() for parameter in learning]).sum())


@pytest.mark.parametrize(
    ("options", "factors"),
    [
        (ScheduleOptions(name="step", every_epochs=2, gamma=0.5), [1, 1, 0.5, 0.5, 0.25, 0.25]),
        (ScheduleOptions(name="step", every_epochs=1, gamma=0.1), [1, 0.1, 1e-2, 1e-3, 1e-4, 1e-5]),
        (ScheduleOptions(name="constant"), [1] * 6),
        (ScheduleOptions(name="cosine"), [(1 + math.cos(math.pi * done / 6)) / 2 for done in range(6)]),
    ],
)
def test_factors_by_epoch(options: ScheduleOptions, factors: list[float]) -> None:
    assert [rate_factor(options, epoch, 6) for epoch in range(1, 7)] == pytest.approx(factors)


def test_a_resting_group_neither_moves_nor_decays_nor_keeps_moments() -> None:
    groups = two_groups()
    optimizer = build_optimizer(OptimizerOptions(weight_decay=0.5), groups, CPU)
    options = ScheduleOptions(warmup_epochs=1)
    apply_warmup(options, groups, epoch=1)
    backward(groups)
    optimizer.step()
    assert torch.equal(groups[0].parameters[0], torch.ones(2))
    assert groups[0].parameters[0] not in optimizer.state
    assert not torch.equal(groups[1].parameters[0], torch.ones(2))
    apply_warmup(options, groups, epoch=2)
    optimizer.zero_grad()
    backward(groups)
    optimizer.step()
    # AdamW: decay lr * wd, then a first step of lr, whatever the gradient's size.
    expected = (1 - 1e-3 * 0.5) - 1e-3
    torch.testing.assert_close(groups[0].parameters[0].detach(), torch.full((2,), expected))


def test_a_gradient_from_before_does_not_move_a_resting_group() -> None:
    groups = two_groups()
    backward(groups)
    apply_warmup(ScheduleOptions(warmup_epochs=3), groups, epoch=3)
    assert groups[0].parameters[0].grad is None
    assert groups[1].parameters[0].grad is not None


def test_without_warm_up_all_learn_from_the_first_epoch() -> None:
    groups = two_groups()
    apply_warmup(ScheduleOptions(warmup_epochs=0), groups, epoch=1)
    assert all(parameter.requires_grad for group in groups for parameter in group.parameters)


@pytest.mark.parametrize(("name", "kind"), [("adamw", torch.optim.AdamW), ("adam", torch.optim.Adam)])
def test_each_group_has_its_rate_and_decay(name: str, kind: type[torch.optim.Optimizer]) -> None:
    options = OptimizerOptions.model_validate({"name": name, "weight_decay": 0.3})
    optimizer = build_optimizer(options, two_groups(), CPU)
    assert type(optimizer) is kind
    settings = [(group["name"], group["lr"], group["weight_decay"]) for group in optimizer.param_groups]
    assert settings == [("backbone", 1e-3, 0.3), ("head", 1e-2, 0.0)]


def test_rates_follow_the_factor_and_do_not_pile_up() -> None:
    groups = two_groups()
    optimizer = build_optimizer(OptimizerOptions(), groups, CPU)
    for _ in range(2):
        rates = set_rates(optimizer, groups, 0.5)
    assert rates == {"backbone": 5e-4, "head": 5e-3}
    assert [group["lr"] for group in optimizer.param_groups] == [5e-4, 5e-3]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [3.0, 4.0]),
        ({"clip_value": 3.5}, [3.0, 3.5]),
        ({"clip_norm": 2.5}, [1.5, 2.0]),
        ({"clip_norm": 9.0}, [3.0, 4.0]),
    ],
)
def test_clipping(options: dict[str, float], expected: list[float]) -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    clip_gradients(OptimizerOptions(**options), [ParameterGroup("one", (parameter,), 1.0, False, True)])
    torch.testing.assert_close(parameter.grad, torch.tensor(expected), rtol=1e-5, atol=0)
