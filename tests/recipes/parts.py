"""A small network, objectives and a batch for the tests of recipes, and the training loop's step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.losses import LOSSES, LossOptions, Objective, TupleObjective
from sfora_ray.models import Embedder, ModelOptions, build_embedder
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import RECIPES, Ingredients, Recipe, RecipeOptions, average_gradients
from sfora_ray.tuples import Pairs, Triplets

CLASSES = 5


def mean_of_active(violations: Tensor) -> Tensor:
    return violations.clamp(min=0).sum() / (violations > 0).sum().clamp(min=1)


class PairLoss(TupleObjective):
    """The contrastive loss of distances between unit rows, margins 0 and 1, averaged over active pairs."""

    def compare(self, rows: Tensor, others: Tensor, tuples: Pairs | Triplets) -> Tensor:
        assert isinstance(tuples, Pairs)
        first, second = F.normalize(rows), F.normalize(others)
        near = (first[tuples.anchors] - second[tuples.positives]).norm(dim=1)
        far = (first[tuples.negative_anchors] - second[tuples.negatives]).norm(dim=1)
        return mean_of_active(near) + mean_of_active(1 - far)


class PairLossOptions(LossOptions):
    card: ClassVar[Card] = Card(title="pairs", paper="none", checked="nothing")
    needs_positives: ClassVar[bool] = True
    takes_tuples: ClassVar[bool] = True

    name: Literal["pairs"] = "pairs"

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> PairLoss:  # noqa: ARG002
        return PairLoss()


def loss_options(name: str) -> LossOptions:
    if name == "pairs":
        return PairLossOptions()
    return LOSSES[name].model_validate({"name": name} | ({"hidden": 7} if name == "hist" else {}))


def small_embedder(seed: int = 0, **changes: Any) -> Embedder:
    options = ModelOptions.model_validate({"backbone": {"name": "conv4"}, "dim": 6, **changes})
    return build_embedder(options, channels=1, generator=torch_generator(seed))


def small_objective(name: str = "hist", dim: int = 6) -> Objective:
    return loss_options(name).build(dim=dim, num_classes=CLASSES, generator=torch_generator(1))


def small_batch(rows: int = 8) -> tuple[Tensor, Tensor]:
    images = torch.rand(rows, 1, 28, 28, generator=torch_generator(2))
    return images, torch.arange(rows) // 2 % CLASSES


def ingredients(objective: str = "hist", *, embedder: Embedder | None = None, **changes: Any) -> Ingredients:
    """Return what a recipe is made of; ``changes`` are other fields of the record."""
    student = small_embedder() if embedder is None else embedder
    return Ingredients(
        student,
        small_objective(objective, student.training_dim),
        CLASSES,
        torch_generator(3),
        **changes,
    )


def recipe_options(settings: dict[str, Any]) -> RecipeOptions:
    return RECIPES[settings["name"]].model_validate(settings)


class _RowsAsImages(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.training_dim = dim
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, rows: Tensor) -> Tensor:
        return rows * self.scale


def rows_as_images(dim: int) -> Embedder:
    """Return an embedder that hands its images on, so that a recipe can be fed given rows."""
    return cast(Embedder, _RowsAsImages(dim))


def given_rows(recipe: Recipe, rows: Tensor, labels: Tensor) -> Tensor:
    """Return the total loss of the one turn of a recipe over :func:`rows_as_images`."""
    (turn,) = recipe.turns(rows, labels)
    return turn.terms.total


def optimizer_of(recipe: Recipe, lr: float = 1e-3) -> torch.optim.Optimizer:
    groups = [
        {"params": list(group.parameters), "lr": group.lr, "weight_decay": 1e-4 * group.decays}
        for group in recipe.parameter_groups(lr, lr)
    ]
    return torch.optim.AdamW(groups)


def take_step(recipe: Recipe, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor) -> list[float]:
    """Take one step as the training loop does and return the total of each turn."""
    totals = []
    for turn in recipe.turns(images, labels):
        optimizer.zero_grad()
        torch.autograd.backward(turn.terms.total)
        average_gradients(recipe.parameters())
        optimizer.step()
        totals.append(turn.terms.total.item())
    recipe.after_step()
    return totals


def turn_gradients(recipe: Recipe, images: Tensor, labels: Tensor) -> list[dict[str, Tensor]]:
    """Return the gradients of each turn by parameter; nothing moves."""
    found = []
    for turn in recipe.turns(images, labels):
        recipe.zero_grad()
        torch.autograd.backward(turn.terms.total)
        average_gradients(recipe.parameters())
        found.append(gradients_of(recipe.named_parameters()))
    return found


def gradients_of(parameters: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    return {name: parameter.grad.clone() for name, parameter in parameters if parameter.grad is not None}
