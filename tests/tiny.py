"""A data set and a configuration so small that a member trains within a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sfora_ray.config.load import build_config
from sfora_ray.config.member import MemberSpec
from sfora_ray.config.overrides import apply_overrides
from sfora_ray.config.pack import PackConfig
from sfora_ray.randomness import numpy_generator

CLASSES, IMAGES_PER_CLASS, SIDE = 12, 8, 16
STEPS_PER_EPOCH = 4


def write_images(root: Path) -> Path:
    """Write 12 class folders of 8 images: a pattern of the class under noise."""
    for label in range(CLASSES):
        folder = root / f"class{label:02d}"
        folder.mkdir(parents=True)
        pattern = numpy_generator(label, "pattern").integers(0, 256, (SIDE, SIDE, 3))
        for number in range(IMAGES_PER_CLASS):
            noise = numpy_generator(label, "noise", number).integers(-90, 91, (SIDE, SIDE, 3))
            pixels = np.clip(pattern + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
    return root


def tiny_values(images: Path, folder: Path) -> dict[str, Any]:
    """Return the configuration as YAML would give it."""
    return {
        "name": "tiny",
        "seeds": [5, 3],
        "data": {"name": "image_folder", "root": str(images)},
        "input": {"image_size": SIDE, "train": {"crop_scale": [0.5, 1.0]}, "test": {"resize": SIDE}},
        "sampler": {"name": "per_class", "batch_size": 12, "samples_per_class": 4},
        "model": {"backbone": {"name": "conv4", "widths": [4, 4, 8, 8]}, "dim": 8, "layer_norm": True},
        "loss": {"name": "hist", "hidden": 7, "lr_distributions": 0.03},
        "recipe": {"name": "distillation", "momentum": 0.9},
        "optimizer": {"lr": 1e-3},
        "schedule": {"every_epochs": 2, "warmup_epochs": 1},
        "training": {"epochs": 2, "evaluate_every": 1},
        "selection": {"split": "test"},
        "folds": ["mean", "gpa", "wccn"],
        "tracking": {"name": "none"},
        "output": str(folder / "runs"),
        "cache_dir": str(folder / "cache"),
    }


def tiny_config(images: Path, folder: Path, *overrides: str) -> PackConfig:
    """Return the tiny configuration with overrides, as on the command line."""
    return build_config(apply_overrides(tiny_values(images, folder), overrides), place="tiny")


def tiny_spec(config: PackConfig, seed: int = 5) -> MemberSpec:
    """Return a member of a tiny pack."""
    return MemberSpec(id="m00", seed=seed, config=config)
