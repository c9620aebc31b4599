"""The plain recipe: the objective on the student's rows, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.recipes.base import Ingredients, LossTerms, RecipeOptions, Seen, StudentRecipe, Turn


class Plain(StudentRecipe):
    """The objective alone."""

    def turns(self, images: Tensor, labels: Tensor) -> Iterator[Turn]:
        """Yield the objective's loss of the whole batch."""
        rows = self.rows(self.student, images)
        total: Tensor = self.loss(rows, self.gather(labels))
        yield Turn(LossTerms(total, {"objective": total.detach()}), Seen(images, rows))


class PlainOptions(RecipeOptions):
    """Options of the plain recipe: none."""

    card: ClassVar[Card] = Card(
        title="Metric and proxy training",
        paper="none: an objective, its own parameters in the optimiser",
        checked="the published training loop, step by step",
    )

    name: Literal["plain"] = "plain"

    def build(self, made: Ingredients) -> Plain:
        """Compose the recipe."""
        return Plain(made)
