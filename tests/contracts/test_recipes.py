"""What every entry of the recipe table owes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sfora_ray.losses import LOSSES
from sfora_ray.recipes import RECIPES, Recipe
from tests.recipes.parts import small_batch, small_embedder, small_objective


def build(name: str, objective: str = "hist", seed: int = 0, **changes: Any) -> Recipe:
    embedder = small_embedder(seed, **changes)
    return RECIPES[name].model_validate({}).build(embedder, small_objective(objective, embedder.training_dim))


def optimizer_of(recipe: Recipe) -> torch.optim.Optimizer:
    groups = [
        {"params": list(group.parameters), "lr": group.lr, "weight_decay": 1e-4 * group.decays}
        for group in recipe.parameter_groups(1e-3, 1e-3)
    ]
    return torch.optim.AdamW(groups)


def train(recipe: Recipe, steps: int) -> list[float]:
    optimizer, totals = optimizer_of(recipe), []
    for _ in range(steps):
        optimizer.zero_grad()
        terms = recipe.losses(*small_batch())
        torch.autograd.backward(terms.total)
        optimizer.step()
        recipe.after_step()
        totals.append(terms.total.item())
    return totals


@pytest.mark.parametrize("name", RECIPES)
def test_its_options_know_the_name_it_is_listed_under(name: str) -> None:
    assert RECIPES[name].model_fields["name"].default == name
    assert RECIPES[name].model_validate({}).model_dump()["name"] == name


@pytest.mark.parametrize("objective", LOSSES)
@pytest.mark.parametrize("name", RECIPES)
def test_it_learns_a_batch_and_every_parameter_that_learns_moves(name: str, objective: str) -> None:
    recipe = build(name, objective)
    before = {key: value.detach().clone() for key, value in recipe.named_parameters()}
    totals = train(recipe, 12)
    assert totals[-1] < totals[0]
    learning = [key for key, value in recipe.named_parameters() if value.requires_grad]
    assert all(not torch.equal(recipe.get_parameter(key), before[key]) for key in learning)


@pytest.mark.parametrize("name", RECIPES)
def test_all_that_learns_is_in_exactly_one_group(name: str) -> None:
    recipe = build(name)
    groups = recipe.parameter_groups(1e-4, 1e-3)
    grouped = [id(parameter) for group in groups for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(p) for p in recipe.parameters() if p.requires_grad)
    assert len({group.name for group in groups}) == len(groups)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("objective", LOSSES)
@pytest.mark.parametrize("name", RECIPES)
def test_only_the_network_runs_in_half_precision(name: str, objective: str, half: torch.dtype) -> None:
    seen: list[torch.dtype] = []
    recipe = (
        RECIPES[name]
        .model_validate({})
        .build(small_embedder(), small_objective(objective), autocast=lambda: torch.autocast("cpu", dtype=half))
    )

    def notice(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        seen.extend([inputs[0].dtype, output.dtype])

    recipe.embedder.head.register_forward_hook(notice)
    recipe.objective.register_forward_hook(notice)
    optimizer = optimizer_of(recipe)
    terms = recipe.losses(*small_batch())
    torch.autograd.backward(terms.total)
    optimizer.step()
    recipe.after_step()
    assert seen[1:] == [half, torch.float32, torch.float32]
    assert terms.total.dtype == torch.float32
    assert torch.isfinite(terms.total)
    floating = [value for value in recipe.state_dict().values() if value.is_floating_point()]
    floating += [v for state in optimizer.state.values() for v in state.values() if torch.is_tensor(v)]
    assert {value.dtype for value in floating} == {torch.float32}


@pytest.mark.parametrize("name", RECIPES)
def test_float64_stays_float64(name: str) -> None:
    recipe = build(name).double()
    images, labels = small_batch()
    assert recipe.losses(images.double(), labels).total.dtype == torch.float64


@pytest.mark.parametrize("name", RECIPES)
def test_terms_are_for_the_log_alone(name: str) -> None:
    terms = build(name).losses(*small_batch())
    assert terms.total.requires_grad
    assert "objective" in terms.terms
    assert not any(term.requires_grad for term in terms.terms.values())


@pytest.mark.parametrize("name", RECIPES)
def test_gather_sees_rows_and_labels(name: str) -> None:
    def twice(rows: Tensor) -> Tensor:
        return torch.cat([rows, rows])

    embedder, objective = small_embedder(frozen_batch_norm=True), small_objective()
    images, labels = small_batch()
    doubled = RECIPES[name].model_validate({}).build(embedder, objective, gather=twice).losses(images, labels)
    plain = RECIPES[name].model_validate({}).build(embedder, objective).losses(twice(images), twice(labels))
    torch.testing.assert_close(doubled.total, plain.total)


@pytest.mark.parametrize("name", RECIPES)
def test_its_state_is_the_whole_state(name: str) -> None:
    recipe, other = build(name), build(name, seed=3)
    train(recipe, 2)
    other.load_state_dict(recipe.state_dict())
    with torch.no_grad():
        first, second = (each.losses(*small_batch()).total for each in (recipe, other))
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", RECIPES)
def test_frozen_statistics_stay_in_all_networks(name: str) -> None:
    recipe = build(name, frozen_batch_norm=True)
    norms = [key for key, _ in recipe.named_buffers() if "backbone" in key]
    start = {key: recipe.get_buffer(key).clone() for key in norms}
    for _ in range(3):
        recipe.eval()
        recipe.train()
        train(recipe, 1)
    assert norms
    assert all(torch.equal(recipe.get_buffer(key), start[key]) for key in norms)


@pytest.mark.parametrize("name", RECIPES)
def test_losses_see_the_projector(name: str) -> None:
    recipe = build(name, projector={"dim": 9})
    images, labels = small_batch()
    torch.autograd.backward(recipe.losses(images, labels).total)
    assert recipe.embedder.get_parameter("projector.weight").grad is not None
    assert recipe.embedder.embed(images).shape == (len(labels), 6)
