"""Small images and folders that several tests make."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from sfora_ray.arrays import UInt8
from sfora_ray.data.base import ImageDataset, ImageTable, make_dataset
from sfora_ray.data.prepared import table_of


@dataclass(frozen=True, eq=False)
class ArrayImages:
    """Images of one size in memory.

    Attributes:
        pixels: ``(N, H, W, C)`` uint8.
    """

    pixels: UInt8

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.pixels)

    def __getitem__(self, row: int) -> UInt8:
        """Return image ``row`` as ``(H, W, C)``."""
        image: UInt8 = self.pixels[row]
        return image


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
