"""A folder of class folders, the form in which people keep their own photos.

Class folders are sorted by name and then split by class, so that test classes are never trained on. An image file
may be a link, also to a file elsewhere, for many keep one copy of their photos; a class folder may not.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from sfora_ray.card import Card
from sfora_ray.data.base import DatasetOptions, ImageDataset, ImageTable, make_dataset
from sfora_ray.data.coarse import CoarseCsv
from sfora_ray.data.images import FileImages
from sfora_ray.data.paths import below_root
from sfora_ray.data.prepared import table_of
from sfora_ray.errors import DataError, did_you_mean
from sfora_ray.options import Options
from sfora_ray.randomness import numpy_generator


class SeededSplit(Options):
    """Classes drawn at random."""

    kind: Literal["seeded"] = "seeded"
    seed: int = 0
    """Names the draw; not the pack's seed, so that packs of other seeds see the same split."""
    train_fraction: float = Field(0.5, gt=0, lt=1)
    """Share of the classes that train, rounded up."""

    def train_classes(self, names: Sequence[str], root: Path) -> set[str]:  # noqa: ARG002
        """Return the class names that train."""
        order = numpy_generator(self.seed, "class split").permutation(len(names))
        return {names[position] for position in order[: math.ceil(self.train_fraction * len(names))]}


class InterleavedSplit(Options):
    """Even positions of the sorted classes train, odd ones test: both see every region of the alphabet."""

    kind: Literal["interleaved"] = "interleaved"

    def train_classes(self, names: Sequence[str], root: Path) -> set[str]:  # noqa: ARG002
        """Return the class names that train."""
        return set(names[::2])


class HalvesSplit(Options):
    """The first half of the sorted classes trains, as in CUB-200-2011 and Cars-196."""

    kind: Literal["halves"] = "halves"

    def train_classes(self, names: Sequence[str], root: Path) -> set[str]:  # noqa: ARG002
        """Return the class names that train."""
        return set(names[: len(names) // 2])


class CsvSplit(Options):
    """A file says which class is in which split."""

    kind: Literal["csv"] = "csv"
    path: Path
    """CSV with columns ``class`` and ``split`` (``train`` or ``test``); below ``root`` and relative to it."""

    _check_path = field_validator("path")(below_root)

    def train_classes(self, names: Sequence[str], root: Path) -> set[str]:
        """Return the class names that train.

        Raises:
            DataError: the file is unreadable, or its classes are not those of the folder.
        """
        split_of = _read_split(root / self.path)
        for name in split_of:
            if name not in names:
                raise DataError(
                    f"{root / self.path}: every class must be a folder of {root}, got '{name}'."
                    f"{did_you_mean(name, names)} Correct the name or remove the row."
                )
        missing = [name for name in names if name not in split_of]
        if missing:
            raise DataError(
                f"{root / self.path}: every class folder needs a row, got none for {len(missing)} "
                f"({', '.join(missing[:5])}). Add them."
            )
        return {name for name, split in split_of.items() if split == "train"}


class ImageFolderOptions(DatasetOptions):
    """A folder of class folders."""

    card: ClassVar[Card] = Card(
        title="Image folder",
        paper="your own photos, one folder a class",
        checked="generated folders with links, odd names and damaged files in tests; the Grocery Store Dataset "
        "(Klasson, Zhang, Kjellstrom, WACV 2019) where it is at hand",
        differences="not applicable",
    )
    name: Literal["image_folder"] = "image_folder"
    root: Path
    """The folder that holds one folder a class; images may lie deeper."""
    channels: Literal[1, 3] = 3
    """1 reads every image as grey, 3 as RGB."""
    split: Annotated[SeededSplit | InterleavedSplit | HalvesSplit | CsvSplit, Field(discriminator="kind")] = (
        InterleavedSplit()
    )
    """Which classes train."""
    min_images_per_class: int = Field(2, ge=2)
    """A class with fewer has nothing to retrieve."""
    small_classes: Literal["error", "leave_out"] = "error"
    """What becomes of smaller classes: refused by name, or left out with a note."""
    extensions: tuple[str, ...] = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")
    """Which files are images, whatever their case; others are passed over."""
    coarse: CoarseCsv | None = None
    """Where the coarse classes are named, for hierarchical metrics and sampling; null: there are none."""

    def load(self, cache_dir: Path) -> ImageDataset:  # noqa: ARG002
        """List the folder; no image is decoded yet.

        Raises:
            DataError: the folder is absent or empty, a class is too small, or a class folder is a link.
        """
        classes = list(_class_folders(self))
        kept = [found for found in classes if len(found.files) >= self.min_images_per_class]
        small = [found for found in classes if len(found.files) < self.min_images_per_class]
        if small and self.small_classes == "error":
            raise DataError(_small_class_message(self, small))
        if len(kept) < 2:
            raise DataError(
                f"{self.root}: there must be two class folders or more with {self.min_images_per_class} "
                f"images, got {len(kept)}. Point `root` to the folder that holds one folder a class."
            )
        names = [found.name for found in kept]
        train_names = self.split.train_classes(names, self.root)
        coarse_of = {} if self.coarse is None else self.coarse.coarse_of(names, self.root)
        return make_dataset(
            name="image_folder",
            channels=self.channels,
            train=_table(self, [found for found in kept if found.name in train_names], coarse_of),
            test=_table(self, [found for found in kept if found.name not in train_names], coarse_of),
            notes=_notes(self, small),
        )


@dataclass(frozen=True)
class _ClassFolder:
    name: str
    files: tuple[Path, ...]


def _class_folders(options: ImageFolderOptions) -> Iterator[_ClassFolder]:
    if not options.root.is_dir():
        raise DataError(f"{options.root}: not a folder. Set `root` to the folder that holds one folder a class.")
    extensions = {extension.lower() for extension in options.extensions}
    for folder in sorted(options.root.iterdir(), key=lambda path: path.name):
        if folder.is_dir() and not folder.name.startswith("."):
            _refuse_folder_link(folder)
            yield _ClassFolder(folder.name, tuple(_images(folder, extensions)))


def _images(folder: Path, extensions: set[str]) -> Iterator[Path]:
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders:
            _refuse_folder_link(Path(place, name))
        found += [Path(place, name) for name in files if not name.startswith(".")]
    for path in sorted(found, key=lambda path: path.as_posix()):
        if path.suffix.lower() in extensions:
            _refuse_name(path)
            yield path


def _refuse_folder_link(path: Path) -> None:
    if path.is_symlink():
        raise DataError(
            f"{path}: a folder must not be a symbolic link, got one to {path.readlink()}. "
            "Copy the folder, or hard-link its files: a linked class could be in both splits."
        )


def _refuse_name(path: Path) -> None:
    try:
        path.as_posix().encode()
    except UnicodeEncodeError:
        raise DataError(f"{path.as_posix()!r}: a file name must be UTF-8 text. Rename the file.") from None


def _table(options: ImageFolderOptions, classes: Sequence[_ClassFolder], coarse_of: dict[str, str]) -> ImageTable:
    files = tuple(path for found in classes for path in found.files)
    class_of = tuple(found.name for found in classes for _ in found.files)
    return table_of(
        tuple(path.relative_to(options.root).as_posix() for path in files),
        class_of,
        FileImages(files, options.channels),
        coarse_of=tuple(coarse_of[name] for name in class_of) if coarse_of else (),
        coarse_names=tuple(sorted(set(coarse_of.values()))),
    )


def _small_class_message(options: ImageFolderOptions, small: Sequence[_ClassFolder]) -> str:
    named = ", ".join(f"'{found.name}' with {len(found.files)}" for found in small[:5])
    return (
        f"{options.root}: every class needs {options.min_images_per_class} images or more, got {len(small)} "
        f"smaller: {named}. Add images, remove the folders, or set small_classes to 'leave_out'."
    )


def _notes(options: ImageFolderOptions, small: Sequence[_ClassFolder]) -> tuple[str, ...]:
    if not small:
        return ()
    num_images = sum(len(found.files) for found in small)
    return (
        f"{len(small)} classes with fewer than {options.min_images_per_class} images left out ({num_images} images)",
    )


def _read_split(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: not a readable CSV file ({error}). Correct `split.path`.") from error
    split_of: dict[str, str] = {}
    for number, row in enumerate(rows, start=2):
        name, split = row.get("class"), row.get("split")
        if not name or split not in ("train", "test"):
            raise DataError(
                f"{path}, row {number}: columns class and split (train or test) are needed, got {dict(row)}. "
                "Correct the row."
            )
        if split_of.setdefault(name, split) != split:
            raise DataError(f"{path}, row {number}: a class is in one split, got '{name}' in both. Remove a row.")
    return split_of
