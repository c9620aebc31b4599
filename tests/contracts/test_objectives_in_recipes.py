"""Every objective, alone and distilled, in full and in half precision, on batches at the edge."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import pytest
import torch

from sfora_ray.errors import ConfigError
from sfora_ray.losses import LOSSES
from sfora_ray.randomness import torch_generator
from tests.recipes.parts import ingredients, recipe_options

EDGES = {
    "regular": [0, 0, 1, 1, 2, 2, 4, 4],
    "all different": [0, 1, 2, 3, 4],
    "one class": [4, 4, 4, 4],
    "a singleton": [3, 2, 2, 0, 0],
    "duplicates": [0, 0, 1, 1],
}
SAME_ORDER = ("n_pairs",)
"""Objectives whose anchors are the first of their class, so that the order within a class counts."""


def half() -> AbstractContextManager[object]:
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("recipe", ["plain", "distillation"])
@pytest.mark.parametrize("name", LOSSES)
def test_it_is_finite_differentiable_and_blind_to_order(name: str, recipe: str, precision: str, edge: str) -> None:
    autocast = nullcontext if precision == "fp32" else half
    made = recipe_options({"name": recipe}).build(ingredients(name, autocast=autocast))
    labels = torch.tensor(EDGES[edge])
    images = torch.rand(len(labels), 1, 28, 28, generator=torch_generator(2))
    if edge == "duplicates":
        images[1] = images[0]
    refusal = ""
    try:
        (turn,) = made.turns(images, labels)
    except ConfigError as error:
        refusal = str(error)
    if refusal:
        assert "batch" in refusal
        return
    total = turn.terms.total
    torch.autograd.backward(total)
    assert total.dtype == torch.float32
    assert torch.isfinite(total)
    gradients = [parameter.grad for parameter in made.embedder.parameters()]
    assert all(gradient is not None and torch.isfinite(gradient).all() for gradient in gradients)
    if name in SAME_ORDER:
        return
    order = torch.randperm(len(labels), generator=torch_generator(5))
    (shuffled,) = made.turns(images[order], labels[order])
    tolerance = 1e-3 if precision == "fp32" else 3e-2
    torch.testing.assert_close(shuffled.terms.total, total, rtol=tolerance, atol=tolerance)
