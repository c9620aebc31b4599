"""CUB-200-2011 (Wah et al., Caltech 2011) with the split of the field: birds 1-100 train, 101-200 test.

The official train/test lists are another split, by image, and are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from sfora_ray.data.base import DatasetOptions, ImageDataset, ImageTable, SplitCounts, make_dataset
from sfora_ray.data.images import FileImages
from sfora_ray.data.paths import is_below
from sfora_ray.data.prepared import table_of
from sfora_ray.errors import DataError

_TRAIN_CLASSES = 100
_COUNTS = {"all": 11_788, "train": 5_864, "test": 5_924}


class CubOptions(DatasetOptions):
    """CUB-200-2011 as published."""

    name: Literal["cub"] = "cub"
    root: Path
    """The extracted ``CUB_200_2011`` folder, or the folder it lies in."""

    def load(self, cache_dir: Path) -> ImageDataset:  # noqa: ARG002
        """Read the official lists; no image is decoded yet.

        Raises:
            DataError: a list or an image is absent, or the counts are not the published ones.
        """
        root = self.root / "CUB_200_2011" if (self.root / "CUB_200_2011").is_dir() else self.root
        files = _read_list(root / "images.txt")
        class_numbers = _read_list(root / "image_class_labels.txt")
        class_names = _read_list(root / "classes.txt")
        try:
            numbers = np.array([int(class_numbers[key]) for key in files])
            names = tuple(class_names[str(number)] for number in numbers)
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{root}: images.txt, image_class_labels.txt and classes.txt must agree, got no usable entry "
                f"for {error}. Extract the archive again."
            ) from error
        _check_counts(root, numbers)
        paths = tuple(files.values())
        _refuse_ways_out(root, paths)
        return make_dataset(
            name="cub",
            channels=3,
            train=_table(root, paths, names, numbers <= _TRAIN_CLASSES),
            test=_table(root, paths, names, numbers > _TRAIN_CLASSES),
        )

    def published_counts(self) -> SplitCounts:
        """Return the counts of the published split."""
        return SplitCounts(
            train_classes=_TRAIN_CLASSES,
            train_images=_COUNTS["train"],
            test_classes=_TRAIN_CLASSES,
            test_images=_COUNTS["test"],
            channels=3,
        )


def _read_list(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not readable ({error}). Set `root` to the extracted CUB_200_2011 folder.") from error
    return dict(line.strip().split(" ", 1) for line in lines if " " in line.strip())


def _check_counts(root: Path, numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
    num_train = int((numbers <= _TRAIN_CLASSES).sum())
    got = {"all": len(numbers), "train": num_train, "test": len(numbers) - num_train}
    if got != _COUNTS:
        raise DataError(
            f"{root}: CUB-200-2011 has {_told(_COUNTS)}, got {_told(got)}. "
            "Extract the published archive again; use `image_folder` for a part of it."
        )


def _refuse_ways_out(root: Path, paths: tuple[str, ...]) -> None:
    for path in paths:
        if not is_below(path):
            raise DataError(
                f"{root / 'images.txt'}: every image must lie below the images folder, got '{path}'. "
                "Extract the published archive again."
            )


def _told(counts: dict[str, int]) -> str:
    return f"{counts['all']} images ({counts['train']} train, {counts['test']} test)"


def _table(
    root: Path,
    paths: tuple[str, ...],
    names: tuple[str, ...],
    chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
) -> ImageTable:
    rows = np.flatnonzero(chosen)
    files = tuple(root / "images" / paths[row] for row in rows)
    absent = [path for path in files if not path.is_file()]
    if absent:
        raise DataError(f"{absent[0]}: listed but absent ({len(absent)} such). Extract the archive again.")
    return table_of(tuple(paths[row] for row in rows), tuple(names[row] for row in rows), FileImages(files, 3))
