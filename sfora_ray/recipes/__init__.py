"""Recipes: how network, objective and miner are composed into one training step.

A new recipe is one file with its options and its module, and one line in :data:`INNER_RECIPES`; distillation can be
added to each of them.
"""

from sfora_ray.recipes.adversarial import AdversarialOptions
from sfora_ray.recipes.base import Ingredients, LossTerms, Recipe, RecipeOptions, Turn
from sfora_ray.recipes.cascade import CascadeOptions
from sfora_ray.recipes.classifier import ClassifierOptions
from sfora_ray.recipes.distillation import DistillationOptions
from sfora_ray.recipes.inner import INNER_RECIPES
from sfora_ray.recipes.memory import MemoryOptions
from sfora_ray.recipes.mined import Mined
from sfora_ray.recipes.parallel import average_gradients, gather_rows
from sfora_ray.recipes.plain import PlainOptions
from sfora_ray.recipes.two_stream import TwoStreamOptions

RECIPES: dict[str, type[RecipeOptions]] = {**INNER_RECIPES, "distillation": DistillationOptions}

__all__ = [
    "INNER_RECIPES",
    "RECIPES",
    "AdversarialOptions",
    "CascadeOptions",
    "ClassifierOptions",
    "DistillationOptions",
    "Ingredients",
    "LossTerms",
    "MemoryOptions",
    "Mined",
    "PlainOptions",
    "Recipe",
    "RecipeOptions",
    "Turn",
    "TwoStreamOptions",
    "average_gradients",
    "gather_rows",
]
