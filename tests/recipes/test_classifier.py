from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import ClassifierOptions
from sfora_ray.recipes.classifier import ClassifierAssisted
from tests.recipes.parts import CLASSES, ingredients, rows_as_images, small_batch

ROWS = torch.randn(7, 4, dtype=torch.float64, generator=torch_generator(5))
LABELS = torch.tensor([3, 0, 0, 4, 3, 0, 1])


def build(weight: float = 1.0) -> ClassifierAssisted:
    made = ingredients("pairs", embedder=rows_as_images(4))
    recipe = ClassifierOptions(weight=weight).build(made)
    return recipe.double()


def slow_logits(recipe: ClassifierAssisted, row: Tensor) -> list[float]:
    weight, bias = recipe.classifier.weight.tolist(), recipe.classifier.bias.tolist()
    return [sum(w * x for w, x in zip(weight[c], row.tolist(), strict=True)) + bias[c] for c in range(CLASSES)]


def slow_probabilities(recipe: ClassifierAssisted, row: Tensor) -> list[float]:
    exponentials = [math.exp(logit) for logit in slow_logits(recipe, row)]
    return [value / sum(exponentials) for value in exponentials]


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_total_is_objective_plus_weighted_cross_entropy(weight: float) -> None:
    recipe = build(weight)
    (turn,) = recipe.turns(ROWS, LABELS)
    entropy = -sum(
        math.log(slow_probabilities(recipe, row)[label]) / len(ROWS)
        for row, label in zip(ROWS, LABELS.tolist(), strict=True)
    )
    objective = recipe.objective(ROWS, LABELS).item()
    assert turn.terms.terms["classification"].item() == pytest.approx(entropy, rel=1e-12)
    assert turn.terms.terms["objective"].item() == objective
    assert turn.terms.total.item() == pytest.approx(objective + weight * entropy, rel=1e-12)


def test_the_classifier_gets_the_gradient_of_the_weighted_cross_entropy_alone() -> None:
    recipe = build(0.5)
    (turn,) = recipe.turns(ROWS, LABELS)
    torch.autograd.backward(turn.terms.total)
    expected = torch.zeros(CLASSES, 4, dtype=torch.float64)
    for row, label in zip(ROWS, LABELS.tolist(), strict=True):
        for c, probability in enumerate(slow_probabilities(recipe, row)):
            expected[c] += 0.5 * (probability - (c == label)) * row / len(ROWS)
    torch.testing.assert_close(recipe.classifier.weight.grad, expected, rtol=1e-10, atol=1e-12)


def test_it_learns_at_its_own_multiple_of_the_rate_of_the_head() -> None:
    recipe = ClassifierOptions(lr_factor=5).build(ingredients())
    groups = {group.name: group for group in recipe.parameter_groups(1e-4, 1e-3)}
    assert groups["classifier.decay"].lr == groups["classifier.no_decay"].lr == 5e-3
    assert groups["classifier.decay"].parameters == (recipe.classifier.weight,)
    assert not groups["classifier.no_decay"].decays
    assert groups["classifier.decay"].warms_up


def test_its_start_comes_from_the_passed_generator_alone() -> None:
    first, second = ClassifierOptions().build(ingredients()), ClassifierOptions().build(ingredients())
    assert torch.equal(first.classifier.weight, second.classifier.weight)
    before = torch.get_rng_state()
    ClassifierOptions().build(ingredients())
    assert torch.equal(before, torch.get_rng_state())


def test_what_is_evaluated_has_no_classifier() -> None:
    recipe = ClassifierOptions().build(ingredients())
    images, _ = small_batch()
    assert recipe.embedder.embed(images).shape == (8, 6)
    assert not any("classifier" in name for name in recipe.embedder.state_dict())
