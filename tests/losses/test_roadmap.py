from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from sfora_ray.losses.roadmap import Roadmap, RoadmapOptions
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor, unit
from tests.losses.test_smooth_ap import exact_ap

SUPAP = {"ap_weight": 1.0, "calibration_weight": 0.0}


def built(**options: Any) -> Roadmap:
    return RoadmapOptions(**options).build(dim=1, num_classes=1, generator=torch_generator(0))


def of_setting(case: dict[str, Any], setting: str) -> Roadmap:
    value = {name: float(case[f"{setting}/{name}"]) for name in ("tau", "rho", "delta", "offset", "start")}
    offset = None if np.isnan(value["offset"]) else value["offset"]
    if setting == "supap_ctxrepo":  # Its line is rho * lead + offset, not begun at delta.
        assert offset is not None
        offset += value["rho"] * value["delta"]
    return built(**{**value, "offset": offset}, **SUPAP)


@pytest.mark.parametrize("name", ["c0", "c2_dup"])
@pytest.mark.parametrize("setting", ["supap_default", "supap_cfg", "supap_inat", "supap_ctxrepo"])
def test_supap_equals_the_reference(name: str, setting: str) -> None:
    case = load_case("roadmap", name)
    rows = tensor(case, "in/X", grad=True)
    loss = of_setting(case, setting)(rows, tensor(case, "in/labels"))
    loss.backward()
    assert_close(loss, case[f"{setting}/loss"])
    assert rows.grad is not None
    assert_close(rows.grad, case[f"{setting}/grad_X"])


@pytest.mark.parametrize("name", ["c0", "c2_dup"])
def test_calibration_equals_the_reference(name: str) -> None:
    case = load_case("roadmap", name)
    rows = tensor(case, "in/X", grad=True)
    loss = built(ap_weight=0.0, calibration_weight=1.0)(rows, tensor(case, "in/labels"))
    loss.backward()
    assert_close(loss, case["calibration/loss"])
    assert rows.grad is not None
    assert_close(rows.grad, case["calibration/grad_X"])


@pytest.mark.parametrize("name", ["c0", "c2_dup"])
def test_both_readings_are_the_weighted_sum(name: str) -> None:
    case = load_case("roadmap", name)
    rows, labels = tensor(case, "in/X"), tensor(case, "in/labels")
    paper = 0.5 * case["supap_default/loss"] + 0.5 * case["calibration/loss"]
    config = case["supap_cfg/loss"] + case["calibration/loss"]
    assert_close(built()(rows, labels), paper)
    assert_close(built(offset=1.44, ap_weight=1.0, calibration_weight=1.0)(rows, labels), config)


def slow_supap(rows: Tensor, labels: list[int], options: RoadmapOptions) -> float:
    def counted(lead: float) -> float:
        sigmoid = 1 / (1 + math.exp(-lead / options.tau))
        if lead > options.delta:
            return options.rho * (lead - options.delta) + options.line_start
        return sigmoid + options.start if lead > 0 else sigmoid

    everyone = range(len(labels))
    cosine = [[float(a @ b / (a.norm() * b.norm())) for b in rows] for a in rows]
    total = 0.0
    for q in everyone:
        positives = [p for p in everyone if labels[p] == labels[q]]
        for p in positives:
            mates = 1.0 + sum(cosine[q][j] >= cosine[q][p] for j in positives if j != p)
            strangers = sum(counted(cosine[q][j] - cosine[q][p]) for j in everyone if labels[j] != labels[q])
            total += mates / (mates + strangers) / len(positives)
    return 1 - total / len(labels)


@pytest.mark.parametrize("labels", [[4, 0, 0, 2, 4, 0, 0], [1, 2, 3, 1, 2, 3, 0], [0, 1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize(
    "options", [{}, {"tau": 0.1, "rho": 3.0, "delta": 0.4, "offset": 1.1}, {"start": 0.0, "offset": 1.0}]
)
def test_supap_equals_slow_loops(labels: list[int], options: dict[str, float]) -> None:
    rows = torch.randn(7, 3, dtype=torch.float64, generator=torch_generator(1)) * 4
    truth = slow_supap(rows, labels, RoadmapOptions(**options))
    assert built(**options, **SUPAP)(rows, torch.tensor(labels)).item() == pytest.approx(truth, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_supap_bounds_the_loss_of_average_precision_from_above(seed: int) -> None:
    rows = torch.randn(20, 6, dtype=torch.float64, generator=torch_generator(seed))
    labels = torch.randint(0, 5, (20,), generator=torch_generator(seed, "labels"))
    assert built(**SUPAP)(rows, labels).item() >= 1 - exact_ap(rows, labels)


def test_the_papers_line_begins_where_the_sigmoid_ends() -> None:
    assert RoadmapOptions().line_start == pytest.approx(1.4933, abs=1e-4)
    assert RoadmapOptions(offset=1.44).line_start == 1.44


@pytest.mark.parametrize(("labels", "teaches"), [([0, 0, 0], False), ([0, 1, 0], True)])
def test_a_positive_ahead_has_no_gradient_but_a_negative_has(labels: list[int], teaches: bool) -> None:
    rows = unit(0, 20, 50).double().requires_grad_()
    built(**SUPAP)(rows, torch.tensor(labels)).backward()
    assert rows.grad is not None
    assert (float(rows.grad.abs().max()) > 0.01) is teaches
    assert teaches or not rows.grad.any()


def test_gradcheck() -> None:
    rows = torch.randn(6, 3, dtype=torch.float64, generator=torch_generator(4), requires_grad=True)
    labels = torch.tensor([0, 0, 3, 1, 1, 0])
    objective = built(tau=0.2, rho=2.0, delta=0.3)
    assert torch.autograd.gradcheck(lambda x: objective(x, labels), (rows,))


def test_order_of_rows_does_not_matter() -> None:
    rows = torch.randn(12, 5, dtype=torch.float64, generator=torch_generator(8))
    labels = torch.tensor([0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
    shuffled = torch.randperm(12, generator=torch_generator(9))
    assert built()(rows[shuffled], labels[shuffled]).item() == pytest.approx(built()(rows, labels).item(), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"positive_margin": 0.5}, r"must not be below negative_margin, got 0\.5 and 0\.6"),
        ({"ap_weight": 0, "calibration_weight": 0}, "must not both be 0"),
    ],
)
def test_what_would_teach_nothing_or_the_opposite_is_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        RoadmapOptions.model_validate(options)


@pytest.mark.parametrize("options", [{"positive_margin": 0.6}, {"ap_weight": 0}, {"calibration_weight": 0}])
def test_equal_margins_and_one_loss_alone_are_not_refused(options: dict[str, float]) -> None:
    assert RoadmapOptions.model_validate(options).model_dump(include=set(options)) == options
