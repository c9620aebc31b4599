"""CUB-200-2011 (Wah et al., Caltech 2011) with the split of the field: birds 1-100 train, 101-200 test.

The official train/test lists are another split, by image, and are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from sfora_ray.card import Card
from sfora_ray.data.base import DatasetOptions, ImageDataset, SplitCounts
from sfora_ray.data.listed import Listed, Listing, read_lines
from sfora_ray.errors import DataError

_TRAIN_CLASSES = 100
_COUNTS = SplitCounts(train_classes=100, train_images=5_864, test_classes=100, test_images=5_924, channels=3)


class CubOptions(DatasetOptions):
    """CUB-200-2011 as published."""

    card: ClassVar[Card] = Card(
        title="CUB-200-2011",
        paper="Wah, Branson, Welinder, Perona, Belongie, Caltech 2011",
        checked="counts of both splits on loading; a generated tree of the real layout in tests",
    )
    name: Literal["cub"] = "cub"
    root: Path
    """The extracted ``CUB_200_2011`` folder, or the folder it lies in."""

    def load(self, cache_dir: Path) -> ImageDataset:  # noqa: ARG002
        """Read the official lists; no image is decoded yet.

        Raises:
            DataError: a list or an image is absent, or the counts are not the published ones.
        """
        root = self.root / "CUB_200_2011" if (self.root / "CUB_200_2011").is_dir() else self.root
        files, numbers, names = (
            _read_list(root / f"{name}.txt") for name in ("images", "image_class_labels", "classes")
        )
        try:
            number_of = {file: int(numbers[key]) for key, file in files.items()}
            class_of = {file: names[str(number)] for file, number in number_of.items()}
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{root}: images.txt, image_class_labels.txt and classes.txt must agree, got no usable entry "
                f"for {error}. Extract the archive again."
            ) from error
        splits = [
            tuple(file for file in files.values() if (number_of[file] <= _TRAIN_CLASSES) is train)
            for train in (True, False)
        ]
        train, test = (Listing(split, tuple(class_of[file] for file in split), split) for split in splits)
        return Listed("cub", "CUB-200-2011", root, root / "images", "images.txt", train, test, _COUNTS).dataset()

    def published_counts(self) -> SplitCounts:
        """Return the counts of the published split."""
        return _COUNTS


def _read_list(path: Path) -> dict[str, str]:
    lines = read_lines(path, "Set `root` to the extracted CUB_200_2011 folder.")
    return dict(line.split(" ", 1) for line in lines if " " in line)
