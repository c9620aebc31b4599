"""Random members that agree about the images, for tests that need no training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfora_ray.arrays import EmbeddingTable, Float32, l2_normalize
from sfora_ray.config.member import MemberSpec
from sfora_ray.pack.gather import PackBlocks, join
from sfora_ray.pack.run_folder import plan_members
from sfora_ray.randomness import numpy_generator
from tests.tiny import tiny_config


def members(count: int) -> tuple[MemberSpec, ...]:
    return plan_members(tiny_config(Path("photos"), Path("here"), f"seeds={list(range(count))}"))


def table(member: int, split: str, *, classes: int = 6, per_class: int = 5, dim: int = 4) -> EmbeddingTable:
    """Noisy unit rows around the centres of their classes, in a random rotation for each member."""
    labels = np.repeat(np.arange(classes), per_class)
    centres = numpy_generator(0, split, "centres").normal(size=(classes, dim))
    noise = numpy_generator(member, split, "noise").normal(size=(len(labels), dim))
    rotation, _ = np.linalg.qr(numpy_generator(member, "rotation").normal(size=(dim, dim)))
    rows: Float32 = ((centres[labels] + noise) @ rotation).astype(np.float32)
    ids = np.array([f"{split}/{row}.png" for row in range(len(labels))])
    return EmbeddingTable(ids, labels, np.asarray(l2_normalize(rows), dtype=np.float32))


def pack_blocks(count: int = 4) -> PackBlocks:
    specs = members(count)
    train, test = ([table(m, split) for m in range(count)] for split in ("train", "test"))
    return PackBlocks(specs, join(specs, train, "train"), join(specs, test, "test"))
