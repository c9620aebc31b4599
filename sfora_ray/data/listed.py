"""Published data sets whose images are named by lists: the lists are checked, no image is opened.

The counts must be the published ones, every name must lead below the image folder, and every file must be there.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfora_ray.data.base import ImageDataset, ImageTable, SplitCounts, make_dataset
from sfora_ray.data.images import FileImages
from sfora_ray.data.paths import is_below
from sfora_ray.data.prepared import table_of
from sfora_ray.errors import DataError


class AbsentImagesError(DataError):
    """Images that a list names are not there.

    Attributes:
        absent: all of them.
    """

    def __init__(self, absent: Sequence[Path]) -> None:
        super().__init__(f"{absent[0]}: listed but absent ({len(absent)} such). Extract the archive again.")
        self.absent = tuple(absent)


@dataclass(frozen=True)
class Listing:
    """One split as lists name it, row by row.

    Attributes:
        ids: ``N`` ids.
        class_of: ``N`` class names.
        files: ``N`` paths below the image folder.
        coarse_of: ``N`` coarse class names; empty: none.
    """

    ids: tuple[str, ...]
    class_of: tuple[str, ...]
    files: tuple[str, ...]
    coarse_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listed:
    """A data set before it is checked.

    Attributes:
        name: as in the data table.
        title: as readers know it, for messages.
        root: what the user set, for messages.
        folder: that the files of both listings lie below.
        lists: the files that name images, for messages.
        train: listing of the training classes.
        test: listing of the test classes.
        counts: as published.
    """

    name: str
    title: str
    root: Path
    folder: Path
    lists: str
    train: Listing
    test: Listing
    counts: SplitCounts

    def dataset(self) -> ImageDataset:
        """Check everything and return the data set.

        Raises:
            AbsentImagesError: a file is not there.
            DataError: other counts than the published ones, a path out of the folder, or a rule broken.
        """
        self._refuse_other_counts()
        names = (*self.train.files, *self.test.files)
        _refuse_ways_out(f"{self.root}, {self.lists}", names)
        absent = absent_files(self.folder, names)
        if absent:
            raise AbsentImagesError(absent)
        coarse_names = tuple(sorted({*self.train.coarse_of, *self.test.coarse_of}))
        return make_dataset(
            name=self.name,
            channels=self.counts.channels,
            train=_table(self.folder, self.train, self.counts.channels, coarse_names),
            test=_table(self.folder, self.test, self.counts.channels, coarse_names),
        )

    def _refuse_other_counts(self) -> None:
        found = SplitCounts(
            train_classes=len(set(self.train.class_of)),
            train_images=len(self.train.ids),
            test_classes=len(set(self.test.class_of)),
            test_images=len(self.test.ids),
            channels=self.counts.channels,
            coarse_classes=len({*self.train.coarse_of, *self.test.coarse_of}) or None,
        )
        if found != self.counts:
            raise DataError(
                f"{self.root}: {self.title} has {_told(self.counts)}, got {_told(found)}. "
                "Take the published lists unchanged; use `image_folder` for a part of it or for another split."
            )


def absent_files(folder: Path, names: Iterable[str]) -> list[Path]:
    """Return the names below ``folder`` that are no files; each folder is read once, not each file asked for."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for name in names:
        parent, _, child = name.rpartition("/")
        wanted[parent].append(child)
    absent: list[Path] = []
    for parent, children in wanted.items():
        there = _files_in(folder / parent)
        absent += [folder / parent / child for child in children if child not in there]
    return absent


def read_lines(path: Path, advice: str) -> list[str]:
    """Return the lines of a text list, stripped, without empty ones, whatever system wrote them.

    Raises:
        DataError: it cannot be read; the message ends with ``advice``.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not readable ({error}). {advice}") from error
    return [stripped for line in lines if (stripped := line.strip())]


def _files_in(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if entry.is_file()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _refuse_ways_out(place: str, names: Iterable[str]) -> None:
    for name in names:
        if not is_below(name):
            raise DataError(
                f"{place}: every image must lie below the image folder, got '{name}'. "
                "Extract the published archive again."
            )


def _told(counts: SplitCounts) -> str:
    coarse = "" if counts.coarse_classes is None else f" in {counts.coarse_classes} coarse classes"
    return (
        f"{counts.train_images} train images of {counts.train_classes} classes and "
        f"{counts.test_images} test images of {counts.test_classes} classes{coarse}"
    )


def _table(folder: Path, listing: Listing, channels: int, coarse_names: tuple[str, ...]) -> ImageTable:
    images = FileImages(tuple(folder / name for name in listing.files), channels)
    return table_of(listing.ids, listing.class_of, images, coarse_of=listing.coarse_of, coarse_names=coarse_names)
