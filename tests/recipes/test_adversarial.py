from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import AdversarialOptions
from sfora_ray.recipes.adversarial import (
    Adversarial,
    direction_error,
    distance,
    frozen_projection,
    mean_of_positive,
)
from tests.recipes.parts import (
    gradients_of,
    ingredients,
    optimizer_of,
    small_batch,
    small_embedder,
    take_step,
    turn_gradients,
)

LABELS = torch.tensor([1, 0, 3, 1, 0, 0, 2, 2])
"""Unequal classes, out of order; class 3 has one row."""


def build(objective: str = "hist", *, synthetic_margin: float = 0.2, **changes: Any) -> Adversarial:
    made = ingredients(objective, embedder=small_embedder(projector={"dim": 7}, frozen_batch_norm=True), **changes)
    return AdversarialOptions(hidden=(9,), synthetic_margin=synthetic_margin).build(made)


def images() -> Tensor:
    return small_batch()[0].double()


def unit(row: Tensor) -> Tensor:
    length: Tensor = row.norm()
    return row / length


def slow_triplets(rows: Tensor, labels: Tensor) -> list[tuple[int, int, int]]:
    found = []
    for a in range(len(rows)):
        gaps = [float((unit(rows[a]) - unit(row)).norm()) for row in rows]
        positives = [j for j in range(len(rows)) if labels[j] == labels[a] and j != a]
        negatives = [j for j in range(len(rows)) if labels[j] != labels[a]]
        if positives and negatives:
            farthest = max(positives, key=lambda j: gaps[j])
            found.append((a, farthest, min(negatives, key=lambda j: gaps[j])))
    return found


@pytest.mark.parametrize(
    "labels", [LABELS, torch.zeros(8, dtype=torch.int64), torch.arange(8), torch.tensor([0] * 7 + [1])]
)
def test_triplets_are_the_farthest_positive_and_the_nearest_negative(labels: Tensor) -> None:
    rows = torch.randn(8, 5, generator=torch_generator(4))
    chosen = build().miner(rows, labels)
    given = zip(chosen.anchors.tolist(), chosen.positives.tolist(), chosen.negatives.tolist(), strict=True)
    assert list(given) == slow_triplets(rows, labels)


def mean_active(values: list[float]) -> float:
    active = [value for value in values if value > 0]
    return sum(active) / len(active) if active else 0.0


def slow_terms(recipe: Adversarial, batch: Tensor) -> dict[str, float]:
    """Loops over triplets with the networks as they are."""
    with torch.no_grad():
        features = recipe.student.features(batch)
        rows = recipe.student(batch)
        parts: dict[str, list[float]] = {name: [] for name in ("adversarial", "hardness", "regularity", "synthetic")}
        for a, p, n in slow_triplets(rows, LABELS):
            negative = recipe.generator(torch.cat([features[a], features[p], features[n]]))
            to_positive = float((unit(rows[a]) - unit(rows[p])).norm())
            embedded = unit(recipe.student.project(negative[None])[0])
            to_negative = float((unit(rows[a]) - embedded).norm())
            parts["adversarial"].append(to_negative - to_positive - 0.2)
            parts["synthetic"].append(to_positive - to_negative + recipe.options.synthetic_margin)
            parts["hardness"].append(float(((unit(negative) - unit(features[a])) ** 2).mean()))
            parts["regularity"].append(float(((unit(negative) - unit(features[n])) ** 2).mean()))
    means = {name: sum(parts[name]) / len(parts[name]) for name in ("hardness", "regularity")}
    return means | {name: mean_active(parts[name]) for name in ("adversarial", "synthetic")}


def test_every_term_equals_slow_loops_with_the_generator_of_its_turn() -> None:
    recipe = build(synthetic_margin=1.5).double()
    optimizer = optimizer_of(recipe, lr=1e-2)
    optimizer.zero_grad()
    expected = slow_terms(recipe, images())
    assert min(expected.values()) > 0
    turns = recipe.turns(images(), LABELS)
    first = next(turns).terms
    for name in ("adversarial", "hardness", "regularity"):
        assert first.terms[name].item() == pytest.approx(expected[name], rel=1e-9), name
    assert first.total.item() == pytest.approx(sum(value.item() for value in first.terms.values()))
    torch.autograd.backward(first.total)
    optimizer.step()
    moved = slow_terms(recipe, images())
    second = next(turns).terms
    assert moved["synthetic"] != expected["synthetic"]
    assert second.terms["synthetic"].item() == pytest.approx(moved["synthetic"], rel=1e-9)
    objective = recipe.objective(recipe.student(images()), LABELS).item()
    assert second.total.item() == pytest.approx(objective + moved["synthetic"], rel=1e-9)


def test_hand_values() -> None:
    violations = torch.tensor([0.5, -1.0, 0.1])
    assert mean_of_positive(violations).item() == pytest.approx(0.3)
    first, second = torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 2.0]])
    assert distance(first, second).item() == pytest.approx(2**0.5)
    assert direction_error(first, second).item() == pytest.approx(1.0)


def test_no_violation_is_a_loss_of_zero_with_a_gradient_of_zero() -> None:
    violations = torch.tensor([-0.5, -1.0], requires_grad=True)
    loss = mean_of_positive(violations)
    torch.autograd.backward(loss)
    assert loss.item() == 0
    assert violations.grad is not None
    assert not violations.grad.any()


def test_each_turn_has_the_gradients_of_its_owner_alone() -> None:
    recipe = build().double()
    generator, metric = turn_gradients(recipe, images(), LABELS)
    learning = {name for name, parameter in recipe.named_parameters() if parameter.requires_grad}
    assert generator.keys() == {name for name in learning if name.startswith("generator.")}
    assert metric.keys() == {name for name in learning if not name.startswith("generator.")}
    assert all(value.abs().sum() > 0 for name, value in generator.items())
    assert metric["student.head.weight"].abs().sum() > 0


def test_each_turn_changes_its_owner_alone_over_repeated_steps() -> None:
    recipe = build()
    optimizer = optimizer_of(recipe, lr=1e-2)
    for _ in range(4):
        for owners, turn in zip(
            ({"generator"}, {"student", "loss"}), recipe.turns(small_batch()[0], LABELS), strict=True
        ):
            before = {name: value.detach().clone() for name, value in recipe.named_parameters()}
            optimizer.zero_grad()
            torch.autograd.backward(turn.terms.total)
            optimizer.step()
            moved = {name for name, value in recipe.named_parameters() if not torch.equal(value, before[name])}
            assert {name.split(".")[0] for name in moved} == owners


def test_the_generator_learns_through_the_embedder_that_stays_fixed() -> None:
    recipe = build().double()
    features = torch.randn(3, recipe.student.backbone.num_features, dtype=torch.float64, requires_grad=True)
    rows = frozen_projection(recipe.student)(features)
    torch.testing.assert_close(rows, recipe.student.project(features))
    torch.autograd.backward(rows.square().sum() + rows.sum())
    assert features.grad is not None
    assert features.grad.abs().sum() > 0
    assert not gradients_of(recipe.student.named_parameters())
    assert all(parameter.requires_grad for parameter in recipe.student.parameters())


def test_synthetic_negatives_send_no_gradient_to_the_trunk_that_made_them() -> None:
    recipe = build("pairs", synthetic_margin=1.5).double()
    _, metric = recipe.turns(images(), LABELS)
    held = {name: parameter for name, parameter in recipe.named_parameters() if name.startswith("student.")}
    given = torch.autograd.grad(metric.terms.total, list(held.values()))
    rows = recipe.student(images())
    features = recipe.student.features(images()).detach()
    chosen = recipe.miner(rows, LABELS)
    parts = torch.cat([features[index] for index in (chosen.anchors, chosen.positives, chosen.negatives)], dim=1)
    negatives = recipe.student.project(recipe.generator(parts).detach())
    anchors, positives, synthetic = (
        F.normalize(part) for part in (rows[chosen.anchors], rows[chosen.positives], negatives)
    )
    loss = F.triplet_margin_loss(anchors, positives, synthetic, margin=1.5, eps=0, reduction="none")
    assert (loss > 0).any()
    total = recipe.objective(rows, LABELS) + loss.sum() / (loss > 0).sum()
    for mine, true in zip(given, torch.autograd.grad(total, list(held.values())), strict=True):
        torch.testing.assert_close(mine, true, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("labels", [torch.zeros(5, dtype=torch.int64), torch.arange(5)])
def test_a_batch_without_triplets_leaves_the_generator_without_a_direction(labels: Tensor) -> None:
    recipe = build("pairs").double()
    generator, metric = turn_gradients(recipe, images()[:5], labels)
    assert generator
    assert all(not value.any() for value in generator.values())
    assert all(torch.isfinite(value).all() for value in metric.values())


def test_a_resting_backbone_rests_in_both_turns() -> None:
    recipe = build()
    recipe.student.backbone.requires_grad_(False)
    start = {name: value.clone() for name, value in recipe.student.backbone.state_dict().items()}
    take_step(recipe, optimizer_of(recipe), small_batch()[0], LABELS)
    assert all(torch.equal(value, start[name]) for name, value in recipe.student.backbone.state_dict().items())
    assert not any(parameter.requires_grad for parameter in recipe.student.backbone.parameters())


def test_the_network_sees_a_batch_once_in_a_step() -> None:
    recipe = AdversarialOptions(hidden=(9,)).build(ingredients())
    calls = []
    recipe.student.backbone.register_forward_hook(lambda *_: calls.append(1))
    list(recipe.turns(small_batch()[0], LABELS))
    assert len(calls) == 1


def test_the_generator_runs_in_the_precision_of_the_network() -> None:
    def half() -> AbstractContextManager[object]:
        return torch.autocast("cpu", dtype=torch.bfloat16)

    recipe = build(autocast=half)
    seen: list[torch.dtype] = []
    recipe.generator[0].register_forward_hook(lambda *given: seen.append(given[2].dtype))
    for turn in recipe.turns(small_batch()[0], LABELS):
        assert turn.terms.total.dtype == torch.float32
    assert set(seen) == {torch.bfloat16}


def test_groups_and_start_of_the_generator() -> None:
    recipe, again = (AdversarialOptions(hidden=(9, 4), lr_factor=3).build(ingredients()) for _ in range(2))
    groups = {group.name: group.lr for group in recipe.parameter_groups(1e-4, 1e-3)}
    assert groups["generator.decay"] == groups["generator.no_decay"] == pytest.approx(3e-3)
    shapes = [tuple(part.weight.shape) for part in recipe.generator if isinstance(part, torch.nn.Linear)]
    assert shapes == [(9, 768), (4, 9), (256, 4)]
    state = again.generator.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in recipe.generator.state_dict().items())
