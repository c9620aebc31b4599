"""Image sources that map whole arrays, and travel to a loader process as a path, not as pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfora_ray.arrays import UInt8


class ArrayFile:
    """Images of one size in a ``.npy`` file of shape ``(N, H, W, C)``, mapped, so shared by processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pixels: UInt8 = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._pixels)

    def __getitem__(self, row: int) -> UInt8:
        """Return image ``row`` as ``(H, W, C)``, read-only."""
        image: UInt8 = self._pixels[row]
        return image

    def __reduce__(self) -> tuple[type[ArrayFile], tuple[Path]]:
        """Pickle the path: a pickled memory map would carry every pixel."""
        return ArrayFile, (self.path,)
