from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sfora_ray.errors import ConfigError
from sfora_ray.losses import (
    ArcFaceOptions,
    NormalizedSoftmaxOptions,
    Objective,
    ProxyNcaOptions,
    ProxyNcaPlusPlusOptions,
)
from sfora_ray.losses.base import LossOptions
from sfora_ray.losses.library.softmax import Classifier
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor


def holding(options: LossOptions, weights: Tensor, *, classes_first: bool) -> tuple[Objective, nn.Parameter]:
    num_classes, dim = weights.shape if classes_first else weights.shape[::-1]
    objective = options.build(dim=dim, num_classes=num_classes, generator=torch_generator(0)).to(weights.dtype)
    (own,) = objective.parameters()
    with torch.no_grad():
        own.copy_(weights)
    return objective, own


def check(case: dict[str, Any], options: LossOptions, *, weights: str, kind: str = "out", rtol: float = 1e-9) -> None:
    objective, own = holding(options, tensor(case, f"in/{weights}"), classes_first=weights == "proxies")
    rows = tensor(case, "in/X", grad=True)
    loss = objective(rows, tensor(case, "in/labels"))
    loss.backward()
    assert_close(loss, case[f"{kind}/loss"], rtol=rtol)
    assert rows.grad is not None
    assert own.grad is not None
    assert_close(rows.grad, case[f"{kind}/grad_X"], rtol=rtol)
    assert_close(own.grad, case[f"{kind}/grad_{weights}"], rtol=rtol)


@pytest.mark.parametrize("name", ["c0_default", "c0_t0.1", "c1_default", "c2_default", "c2_t0.1"])
def test_normalized_softmax_equals_the_reference(name: str) -> None:
    case = load_case("pml_normsoftmax", name)
    check(case, NormalizedSoftmaxOptions(temperature=float(case["hp/temperature"])), weights="W")


@pytest.mark.parametrize("name", ["c0_default", "c0_m15s30", "c1_default", "c2_default", "c2_m15s30"])
def test_arcface_equals_the_reference(name: str) -> None:
    case = load_case("pml_arcface", name)
    options = ArcFaceOptions(margin_degrees=float(case["hp/margin_deg"]), scale=float(case["hp/scale"]))
    check(case, options, weights="W")


@pytest.mark.parametrize(
    "name", ["c0_default", "c0_pp9", "c0_s32", "c1_default", "c1_s32", "c2_default", "c2_pp9", "c2_s32"]
)
def test_proxy_nca_equals_the_reference(name: str) -> None:
    case = load_case("pml_proxynca", name)
    check(case, ProxyNcaOptions(scale=float(case["hp/softmax_scale"])), weights="proxies")


@pytest.mark.parametrize("name", ["c0_pp9", "c2_pp9"])
def test_proxy_nca_equals_the_authors_programs(name: str) -> None:
    case = load_case("pml_proxynca", name)
    check(case, ProxyNcaPlusPlusOptions(), weights="proxies", kind="out/official_ProxyNCA_prob")
    others = ProxyNcaOptions(scale=9, denominator="others")
    check(case, others, weights="proxies", kind="out/official_ProxyNCA_classic")


def slow_arcface(rows: Tensor, labels: list[int], weights: Tensor, *, margin: float, scale: float) -> float:
    losses = []
    for row, label in zip(rows, labels, strict=True):
        logits = [float(row @ column / (row.norm() * column.norm())) for column in weights.T]
        angle = math.acos(logits[label])
        beyond = math.cos(angle) - margin * math.sin(margin)
        logits[label] = math.cos(angle + margin) if angle <= math.pi - margin else beyond
        losses.append(math.log(sum(math.exp(scale * logit) for logit in logits)) - scale * logits[label])
    return sum(losses) / len(losses)


@pytest.mark.parametrize("degrees", [0.0, 28.6, 120.0])
def test_arcface_equals_slow_loops(degrees: float) -> None:
    rows = torch.randn(6, 3, dtype=torch.float64, generator=torch_generator(1)) * 4
    weights = torch.randn(3, 5, dtype=torch.float64, generator=torch_generator(2))
    labels = [4, 0, 0, 2, 4, 1]
    objective, _ = holding(ArcFaceOptions(margin_degrees=degrees, scale=8), weights, classes_first=False)
    truth = slow_arcface(rows, labels, weights, margin=math.radians(degrees), scale=8)
    assert objective(rows, torch.tensor(labels)).item() == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_arcface_stays_finite_where_a_row_meets_its_class_weight(sign: float) -> None:
    objective, own = holding(ArcFaceOptions(), torch.eye(3), classes_first=False)
    rows = (sign * torch.eye(3)).requires_grad_()
    objective(rows, torch.arange(3)).backward()
    assert rows.grad is not None
    assert own.grad is not None
    assert torch.isfinite(rows.grad).all()
    assert torch.isfinite(own.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_angles_stay_where_the_arc_cosine_has_a_slope(dtype: torch.dtype) -> None:
    objective, _ = holding(ArcFaceOptions(), torch.eye(2, dtype=dtype), classes_first=False)
    step = torch.finfo(dtype).eps
    cosines = torch.tensor([1, -1, 1 - step, step - 1], dtype=dtype, requires_grad=True)
    assert isinstance(objective, Classifier)
    angles = objective.loss.get_angles(cosines)
    angles.sum().backward()
    assert 0 < angles.min() < angles.max() < math.pi
    assert cosines.grad is not None
    assert torch.isfinite(cosines.grad).all()


@pytest.mark.parametrize("denominator", ["all", "others"])
def test_improbable_rows_stay_in_proxy_nca(denominator: str) -> None:
    options = ProxyNcaOptions.model_validate({"scale": 100, "denominator": denominator})
    objective, _ = holding(options, torch.eye(3), classes_first=True)
    loss = objective(-torch.eye(3)[:1], torch.tensor([0]))  # its own proxy at 4, the two others at 2
    assert loss.item() == pytest.approx(200 + math.log(2), rel=1e-6)


ALL: list[LossOptions] = [
    NormalizedSoftmaxOptions(),
    ArcFaceOptions(),
    ProxyNcaOptions(),
    ProxyNcaOptions(denominator="others"),
    ProxyNcaPlusPlusOptions(),
]


@pytest.mark.parametrize("options", ALL)
def test_gradcheck(options: LossOptions) -> None:
    objective = options.build(dim=3, num_classes=4, generator=torch_generator(3)).double()
    rows = torch.randn(5, 3, dtype=torch.float64, generator=torch_generator(4), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: objective(x, torch.tensor([0, 0, 3, 1, 1])), (rows,))


@pytest.mark.parametrize("options", ALL)
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_weights_keep_their_precision_beside_half_precision_rows(options: LossOptions, half: torch.dtype) -> None:
    objective = options.build(dim=3, num_classes=4, generator=torch_generator(3))
    rows, labels = torch.randn(4, 3, generator=torch_generator(5)).to(half), torch.tensor([0, 0, 3, 3])
    with torch.autocast("cpu", dtype=half):
        loss = objective(rows, labels)
    assert loss.dtype == torch.float32
    assert {parameter.dtype for parameter in objective.parameters()} == {torch.float32}
    assert torch.equal(loss, objective(rows.float(), labels))


@pytest.mark.parametrize("options", ALL)
def test_weights_start_with_the_spread_asked_for_from_the_generator_alone(options: LossOptions) -> None:
    before = torch.get_rng_state()
    (first,) = options.build(dim=64, num_classes=100, generator=torch_generator(6)).parameters()
    (again,) = options.build(dim=64, num_classes=100, generator=torch_generator(6)).parameters()
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first, again)
    expected = 0.125 if options.name == "proxy_nca_pp" else 1.0
    assert first.std().item() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(
    ("options", "group_name"),
    [
        (NormalizedSoftmaxOptions(weights_lr=0.5, weights_decay=True), "normalized_softmax.weights"),
        (ArcFaceOptions(weights_lr=0.5, weights_decay=True), "arcface.weights"),
        (ProxyNcaOptions(proxy_lr=0.5, proxy_decay=True), "proxy_nca.proxies"),
        (ProxyNcaPlusPlusOptions(proxy_lr=0.5, proxy_decay=True), "proxy_nca_pp.proxies"),
    ],
)
def test_weights_are_one_group_at_their_own_rate(options: LossOptions, group_name: str) -> None:
    objective = options.build(dim=2, num_classes=3, generator=torch_generator(7))
    (group,) = objective.parameter_groups(base_lr=123.0)
    assert (group.name, group.lr, group.decays, group.warms_up) == (group_name, 0.5, True, True)
    assert group.parameters == tuple(objective.parameters())


def test_proxy_nca_is_a_softmax_of_squared_distances() -> None:
    proxies = torch.randn(4, 3, dtype=torch.float64, generator=torch_generator(8))
    rows = torch.randn(5, 3, dtype=torch.float64, generator=torch_generator(9))
    objective, _ = holding(ProxyNcaOptions(scale=2.5), proxies, classes_first=True)
    labels = torch.tensor([3, 0, 1, 1, 2])
    squared = (F.normalize(rows)[:, None] - F.normalize(proxies)).pow(2).sum(dim=2)  # (5, 4)
    assert_close(objective(rows, labels), F.cross_entropy(-2.5 * squared, labels))


def test_the_proxies_of_other_classes_must_be_there() -> None:
    with pytest.raises(ConfigError, match="one training class"):
        ProxyNcaOptions(denominator="others").build(dim=4, num_classes=1, generator=torch_generator(0))
