"""Recipes: how network and objective are composed into one training step.

A new recipe is one file with its options and its module, and one line in :data:`RECIPES`.
"""

from sfora_ray.recipes.base import LossTerms, Recipe, RecipeOptions
from sfora_ray.recipes.distillation import DistillationOptions
from sfora_ray.recipes.parallel import average_gradients, gather_rows
from sfora_ray.recipes.plain import PlainOptions

RECIPES: dict[str, type[RecipeOptions]] = {"plain": PlainOptions, "distillation": DistillationOptions}

__all__ = [
    "RECIPES",
    "DistillationOptions",
    "LossTerms",
    "PlainOptions",
    "Recipe",
    "RecipeOptions",
    "average_gradients",
    "gather_rows",
]
