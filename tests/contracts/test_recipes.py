"""What every entry of the recipe table owes, alone and inside distillation."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sfora_ray.losses import LOSSES
from sfora_ray.recipes import INNER_RECIPES, RECIPES, Recipe, Turn
from tests.recipes.parts import (
    ingredients,
    loss_options,
    optimizer_of,
    recipe_options,
    small_batch,
    small_embedder,
    take_step,
)

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "memory": [{"capacity": 20, "warmup_steps": 2}],
    "two_stream": [{"reference": "shared"}, {"reference": "own"}],
    "adversarial": [{"hidden": [8]}],
}
ALONE = [{"name": name, **settings} for name in INNER_RECIPES for settings in SETTINGS.get(name, [{}])]
CASES = [*ALONE, *({"name": "distillation", "base": base} for base in ALONE)]
OF_TUPLES = [name for name in LOSSES if LOSSES[name].takes_tuples]


def name_of(settings: dict[str, Any]) -> str:
    inside = settings.get("base", settings)
    name = "-".join([inside["name"], *([inside["reference"]] if "reference" in inside else [])])
    return f"distilled-{name}" if "base" in settings else name


def fits(settings: dict[str, Any], objective: str) -> bool:
    return recipe_options(settings).problem(loss_options(objective), dim=6, batch_size=8) is None


def objective_for(settings: dict[str, Any]) -> str:
    return "hist" if fits(settings, "hist") else "pairs"


every_recipe = pytest.mark.parametrize("settings", CASES, ids=name_of)
of_tuples = pytest.mark.parametrize(
    "settings", [settings for settings in ALONE if recipe_options(settings).chooses_tuples], ids=name_of
)


def build(settings: dict[str, Any], objective: str | None = None, seed: int = 0, **changes: Any) -> Recipe:
    made = ingredients(objective or objective_for(settings), embedder=small_embedder(seed, **changes))
    return recipe_options(settings).build(made)


def train(recipe: Recipe, steps: int, *, optimizer: torch.optim.Optimizer | None = None) -> list[float]:
    """Return the total of the last turn, in which the student learns, at each step."""
    moved_by = optimizer or optimizer_of(recipe)
    return [take_step(recipe, moved_by, *small_batch())[-1] for _ in range(steps)]


def turns_of(recipe: Recipe, images: Tensor, labels: Tensor) -> list[Turn]:
    """Return all turns of a step in which nothing moves."""
    return list(recipe.turns(images, labels))


@pytest.mark.parametrize("name", RECIPES)
def test_its_options_know_the_name_it_is_listed_under(name: str) -> None:
    assert RECIPES[name].model_fields["name"].default == name
    assert RECIPES[name].model_validate({}).model_dump()["name"] == name


@pytest.mark.parametrize("name", RECIPES)
def test_its_card_says_where_it_comes_from_and_how_it_was_proved(name: str) -> None:
    card = RECIPES[name].card
    assert all([card.title, card.paper, card.checked, card.differences])
    assert [other for other in RECIPES if RECIPES[other].card.title == card.title] == [name]


@every_recipe
def test_its_options_survive_json(settings: dict[str, Any]) -> None:
    options = recipe_options(settings)
    assert type(options).model_validate_json(options.model_dump_json()) == options


@every_recipe
def test_it_learns_a_batch_and_every_parameter_that_learns_moves(settings: dict[str, Any]) -> None:
    recipe = build(settings)
    before = {key: value.detach().clone() for key, value in recipe.named_parameters()}
    totals = train(recipe, 8)
    assert totals[-1] < totals[0]
    learning = [key for key, value in recipe.named_parameters() if value.requires_grad]
    assert all(not torch.equal(recipe.get_parameter(key), before[key]) for key in learning)


@pytest.mark.parametrize("objective", OF_TUPLES)
@of_tuples
def test_a_recipe_of_tuples_trains_every_objective_of_tuples(settings: dict[str, Any], objective: str) -> None:
    recipe = build(settings, objective)
    before = recipe.embedder.head.weight.detach().clone()
    totals = train(recipe, 3)
    assert totals[0] > 0
    assert all(math.isfinite(total) for total in totals)
    assert not torch.equal(recipe.embedder.head.weight, before)
    assert all(torch.isfinite(value).all() for value in recipe.state_dict().values())


@every_recipe
def test_all_that_learns_is_in_exactly_one_group(settings: dict[str, Any]) -> None:
    recipe = build(settings)
    groups = recipe.parameter_groups(1e-4, 1e-3)
    grouped = [id(parameter) for group in groups for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(p) for p in recipe.parameters() if p.requires_grad)
    assert len({group.name for group in groups}) == len(groups)


@pytest.mark.parametrize("half", [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)], ids=str)
@every_recipe
def test_only_networks_run_in_half_precision(settings: dict[str, Any], half: torch.dtype) -> None:
    seen: list[torch.dtype] = []
    made = ingredients(objective_for(settings), autocast=lambda: torch.autocast("cpu", dtype=half))
    recipe = recipe_options(settings).build(made)
    recipe.embedder.head.register_forward_hook(lambda *given: seen.append(given[2].dtype))
    learned: list[torch.dtype] = []

    def notice(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        learned.extend([inputs[0].dtype, output.dtype])

    recipe.objective.register_forward_hook(notice)
    optimizer = optimizer_of(recipe)
    for _ in range(3):
        for turn in recipe.turns(*small_batch()):
            optimizer.zero_grad()
            torch.autograd.backward(turn.terms.total)
            optimizer.step()
            assert turn.terms.total.dtype == torch.float32
            assert torch.isfinite(turn.terms.total)
            assert turn.seen is None or turn.seen.rows.dtype == torch.float32
        recipe.after_step()
    assert set(seen) == {half}
    assert set(learned) <= {torch.float32}
    floating = [value for value in recipe.state_dict().values() if value.is_floating_point()]
    floating += [v for state in optimizer.state.values() for v in state.values() if torch.is_tensor(v)]
    assert {value.dtype for value in floating} == {torch.float32}


@every_recipe
def test_float64_stays_float64(settings: dict[str, Any]) -> None:
    recipe = build(settings).double()
    images, labels = small_batch()
    for _ in range(3):
        assert {turn.terms.total.dtype for turn in recipe.turns(images.double(), labels)} == {torch.float64}
    assert {value.dtype for value in recipe.state_dict().values() if value.is_floating_point()} == {torch.float64}


@every_recipe
def test_terms_are_for_the_log_alone(settings: dict[str, Any]) -> None:
    turns = turns_of(build(settings), *small_batch())
    assert "objective" in turns[-1].terms.terms
    names = [name for turn in turns for name in turn.terms.terms]
    assert len(names) == len(set(names))
    for turn in turns:
        assert turn.terms.total.requires_grad
        assert turn.terms.total.ndim == 0
        assert not any(term.requires_grad for term in turn.terms.terms.values())


@every_recipe
def test_it_shows_what_the_student_saw_where_it_learns(settings: dict[str, Any]) -> None:
    recipe = build(settings, frozen_batch_norm=True)
    images, labels = small_batch()
    *earlier, last = turns_of(recipe, images, labels)
    assert all(turn.seen is None for turn in earlier)
    assert last.seen is not None
    assert last.seen.rows.requires_grad
    torch.testing.assert_close(last.seen.rows, recipe.embedder(last.seen.images))


@every_recipe
def test_gather_sees_rows_and_labels(settings: dict[str, Any]) -> None:
    def twice(rows: Tensor) -> Tensor:
        return torch.cat([rows, rows])

    images, labels = small_batch()
    for steps in (1, 3):
        totals = []
        for batch, changes in (((images, labels), {"gather": twice}), ((twice(images), twice(labels)), {})):
            made = ingredients(objective_for(settings), embedder=small_embedder(frozen_batch_norm=True), **changes)
            recipe = recipe_options(settings).build(made)
            totals.append([[turn.terms.total for turn in turns_of(recipe, *batch)] for _ in range(steps)][-1])
        torch.testing.assert_close(*totals)


@every_recipe
def test_the_same_ingredients_take_the_same_steps_to_the_bit(settings: dict[str, Any]) -> None:
    first, second = (build(settings) for _ in range(2))
    assert train(first, 3) == train(second, 3)
    state = second.state_dict()
    assert all(torch.equal(value, state[key]) for key, value in first.state_dict().items())


@pytest.mark.parametrize("steps", [1, 3])
@every_recipe
def test_it_goes_on_from_its_state_to_the_same_bits(settings: dict[str, Any], steps: int) -> None:
    whole, other = build(settings), build(settings, seed=3)
    optimizer, continued = optimizer_of(whole), optimizer_of(other)
    train(whole, steps, optimizer=optimizer)
    other.load_state_dict(whole.state_dict())
    continued.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert train(other, 2, optimizer=continued) == train(whole, 2, optimizer=optimizer)
    state = whole.state_dict()
    assert all(torch.equal(value, state[key]) for key, value in other.state_dict().items())


@every_recipe
def test_frozen_statistics_stay_in_all_networks(settings: dict[str, Any]) -> None:
    recipe = build(settings, frozen_batch_norm=True)
    norms = [key for key, _ in recipe.named_buffers() if "backbone" in key]
    start = {key: recipe.get_buffer(key).clone() for key in norms}
    for _ in range(3):
        recipe.eval()
        recipe.train()
        train(recipe, 1)
    assert norms
    assert all(torch.equal(recipe.get_buffer(key), start[key]) for key in norms)


@every_recipe
def test_losses_see_the_projector(settings: dict[str, Any]) -> None:
    recipe = build(settings, projector={"dim": 9})
    images, labels = small_batch()
    torch.autograd.backward(turns_of(recipe, images, labels)[-1].terms.total)
    assert recipe.embedder.get_parameter("projector.weight").grad is not None
    assert recipe.embedder.embed(images).shape == (len(labels), 6)


@pytest.mark.parametrize("labels", [[0] * 8, [3, 3, 3, 1, 1, 4, 0, 2]], ids=["one class", "unequal"])
@every_recipe
def test_lopsided_batches_give_finite_losses_and_gradients(settings: dict[str, Any], labels: list[int]) -> None:
    recipe = build(settings)
    optimizer = optimizer_of(recipe)
    for _ in range(3):
        take_step(recipe, optimizer, small_batch()[0], torch.tensor(labels))
    assert all(torch.isfinite(value).all() for value in recipe.state_dict().values())


@every_recipe
def test_it_takes_no_number_from_the_global_stream(settings: dict[str, Any]) -> None:
    before = torch.get_rng_state()
    train(build(settings), 2)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_of_tuples_refuses_other_objectives_and_no_others(name: str) -> None:
    options = RECIPES[name].model_validate({})
    for loss in LOSSES:
        refused = options.problem(LOSSES[loss].model_validate({}), dim=6, batch_size=8)
        assert (refused is not None) == (options.chooses_tuples and not LOSSES[loss].takes_tuples), loss
