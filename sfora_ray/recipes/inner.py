"""The recipes that stand alone, which are also those that distillation can be added to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfora_ray.options import one_of
from sfora_ray.recipes.adversarial import AdversarialOptions
from sfora_ray.recipes.base import RecipeOptions
from sfora_ray.recipes.cascade import CascadeOptions
from sfora_ray.recipes.classifier import ClassifierOptions
from sfora_ray.recipes.memory import MemoryOptions
from sfora_ray.recipes.plain import PlainOptions
from sfora_ray.recipes.two_stream import TwoStreamOptions

INNER_RECIPES: dict[str, type[RecipeOptions]] = {
    "plain": PlainOptions,
    "classifier": ClassifierOptions,
    "cascade": CascadeOptions,
    "memory": MemoryOptions,
    "two_stream": TwoStreamOptions,
    "adversarial": AdversarialOptions,
}

if TYPE_CHECKING:
    InnerRecipe = RecipeOptions
else:
    InnerRecipe = one_of(INNER_RECIPES)
