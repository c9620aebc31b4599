"""Recipes that choose themselves which rows an objective of pairs or triplets compares."""

from __future__ import annotations

from typing import ClassVar

from sfora_ray.losses import LOSSES, LossOptions, TupleObjective
from sfora_ray.recipes.base import Ingredients, RecipeOptions, StudentRecipe


class TupleRecipe(StudentRecipe):
    """A recipe whose objective is handed tuples."""

    def __init__(self, made: Ingredients) -> None:
        super().__init__(made)
        assert isinstance(made.objective, TupleObjective), "the configuration refuses all other objectives"

    @property
    def objective(self) -> TupleObjective:
        """The loss of tuples."""
        assert isinstance(self.loss, TupleObjective)
        return self.loss


class TupleRecipeOptions(RecipeOptions):
    """Options of a recipe that hands tuples to its objective."""

    chooses_tuples: ClassVar[bool] = True

    def problem(self, loss: LossOptions, *, dim: int, batch_size: int) -> str | None:  # noqa: ARG002
        """Return why this objective cannot be handed tuples, or None."""
        if loss.takes_tuples:
            return None
        able = ", ".join(name for name, options in LOSSES.items() if options.takes_tuples)
        return (
            f"name '{self.name}' chooses what is compared, but loss.name '{loss.name}' takes no pairs or "
            f"triplets. Use one of {able}"
        )
