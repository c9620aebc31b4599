"""Small images and folders that several tests make."""

from pathlib import Path

import numpy as np
from PIL import Image

from sfora_ray.arrays import UInt8
from sfora_ray.data.base import ImageDataset, ImageTable, make_dataset
from sfora_ray.data.prepared import table_of
from sfora_ray.data.sources import ArrayImages


def noise(seed: int, height: int = 20, width: int = 24, channels: int = 3) -> UInt8:
    shape = (height, width, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def write_folder(root: Path, counts: dict[str, int], suffix: str = ".png") -> Path:
    for position, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True)
        for number in range(count):
            Image.fromarray(noise(100 * position + number)).save(root / name / f"{number:02d}{suffix}")
    return root


def table_in_memory(counts: dict[str, int], *, side: int = 16, channels: int = 3) -> ImageTable:
    class_of = tuple(name for name, count in counts.items() for _ in range(count))
    ids = tuple(f"{name}/{number}" for name, count in counts.items() for number in range(count))
    pixels = np.stack([noise(row, side, side, channels) for row in range(len(ids))])
    return table_of(ids, class_of, ArrayImages(pixels))


def dataset_in_memory() -> ImageDataset:
    return make_dataset(
        name="memory",
        channels=3,
        train=table_in_memory({"a": 3, "b": 3}),
        test=table_in_memory({"c": 2, "d": 2}),
    )
