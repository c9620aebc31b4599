"""A small network, objective and batch for the tests of recipes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sfora_ray.losses import LOSSES, Objective
from sfora_ray.models import Embedder, ModelOptions, build_embedder
from sfora_ray.randomness import torch_generator

CLASSES = 5


def small_embedder(seed: int = 0, **changes: Any) -> Embedder:
    options = ModelOptions.model_validate({"backbone": {"name": "conv4"}, "dim": 6, **changes})
    return build_embedder(options, channels=1, generator=torch_generator(seed))


def small_objective(name: str = "hist", dim: int = 6) -> Objective:
    options = LOSSES[name].model_validate({"name": name} | ({"hidden": 7} if name == "hist" else {}))
    return options.build(dim=dim, num_classes=CLASSES, generator=torch_generator(1))


def small_batch(rows: int = 8) -> tuple[Tensor, Tensor]:
    images = torch.rand(rows, 1, 28, 28, generator=torch_generator(2))
    return images, torch.arange(rows) // 2 % CLASSES
