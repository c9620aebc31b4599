"""The plain recipe: the objective on the student's rows, nothing else."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

from torch import Tensor

from sfora_ray.losses import Objective
from sfora_ray.models import Embedder
from sfora_ray.recipes.base import Autocast, Gather, LossTerms, Recipe, RecipeOptions, only_rows_here


class Plain(Recipe):
    """The objective alone."""

    def losses(self, images: Tensor, labels: Tensor) -> LossTerms:
        """Return the objective's loss of the whole batch."""
        total: Tensor = self.objective(self.rows(self.embedder, images), self.gather(labels))
        return LossTerms(total, {"objective": total.detach()})


class PlainOptions(RecipeOptions):
    """Options of the plain recipe: none."""

    name: Literal["plain"] = "plain"

    def build(
        self,
        embedder: Embedder,
        objective: Objective,
        *,
        autocast: Autocast = nullcontext,
        gather: Gather = only_rows_here,
    ) -> Plain:
        """Compose the recipe."""
        return Plain(embedder, objective, autocast=autocast, gather=gather)
