"""What a data set is: two tables of images, one of training classes and one of classes never trained on."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from sfora_ray.arrays import Int64, UInt8
from sfora_ray.card import Card
from sfora_ray.errors import DataError
from sfora_ray.options import Options


class ImageSource(Protocol):
    """Decoded images by row number. Small enough to be sent to a loader process: paths or a memory map."""

    def __len__(self) -> int:
        """Return the number of images."""
        ...

    def __getitem__(self, row: int) -> UInt8:
        """Return image ``row`` as uint8 ``(H, W, C)``, ``C`` 1 or 3."""
        ...


@dataclass(frozen=True)
class ImageTable:
    """One split of a data set.

    Attributes:
        ids: stable ids, unique within the data set, equal on every machine (e.g. a path below the root).
        labels: ``(N,)`` positions in ``class_names``.
        class_names: the classes of this split, ``C`` of them.
        images: the pixels, row by row.
        coarse_labels: ``(N,)`` positions in ``coarse_names``, equal for all images of a class; None: no coarse classes.
        coarse_names: the coarse classes, one tuple for all splits of a data set.
    """

    ids: tuple[str, ...]
    labels: Int64
    class_names: tuple[str, ...]
    images: ImageSource
    coarse_labels: Int64 | None = None
    coarse_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.ids)

    def rows(self, chosen: Int64) -> ImageTable:
        """Return the table of the chosen rows; classes that keep no row are dropped and labels renumbered."""
        kept, labels = np.unique(self.labels[chosen], return_inverse=True)
        return ImageTable(
            tuple(self.ids[row] for row in chosen),
            labels.astype(np.int64),
            tuple(self.class_names[label] for label in kept),
            ChosenRows(self.images, chosen),
            None if self.coarse_labels is None else self.coarse_labels[chosen],
            self.coarse_names,
        )


@dataclass(frozen=True)
class ChosenRows:
    """An image source that shows some rows of another."""

    source: ImageSource
    chosen: Int64

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.chosen)

    def __getitem__(self, row: int) -> UInt8:
        """Return image ``row`` of the choice."""
        return self.source[int(self.chosen[row])]


@dataclass(frozen=True)
class ImageDataset:
    """A data set whose train and test classes are proved disjoint.

    Attributes:
        name: as in the data table.
        channels: 1 or 3.
        digest: a short hash of every id and label: two runs with one digest saw the same rows.
        train: images of the training classes.
        test: images of classes that training never sees.
        notes: what a reader must know, e.g. ``5 classes with fewer than 2 images left out (5 images)``.
    """

    name: str
    channels: int
    digest: str
    train: ImageTable
    test: ImageTable
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shared = sorted(set(self.train.class_names) & set(self.test.class_names))
        if shared:
            raise DataError(
                f"data {self.name}: train and test classes must be disjoint, got {len(shared)} in both "
                f"({', '.join(shared[:5])}). Correct the split."
            )
        _refuse_repeats(self.name, (*self.train.ids, *self.test.ids))
        for table in (self.train, self.test):
            _refuse_straddlers(self.name, table)


def make_dataset(
    *, name: str, channels: int, train: ImageTable, test: ImageTable, notes: tuple[str, ...] = ()
) -> ImageDataset:
    """Join two splits to a data set, with the digest of every id and class name.

    Raises:
        DataError: a split is empty, a class is in both or in two coarse classes, or an id is there twice.
    """
    for split, table in (("train", train), ("test", test)):
        if not len(table):
            raise DataError(f"data {name}: the {split} split must have images, got none. Correct the split.")
    digest = digest_of_rows(train, test)
    return ImageDataset(name, channels, digest, train, test, notes)


def digest_of_rows(*tables: ImageTable) -> str:
    """Return 16 hexadecimal digits that change with any id, class or split of the tables."""
    hasher = hashlib.blake2b(digest_size=8)
    for table in tables:
        for identifier, label in zip(table.ids, table.labels, strict=True):
            hasher.update(f"{identifier}\0{table.class_names[label]}\0".encode())
        hasher.update(b"\1")
    return hasher.hexdigest()


def _refuse_repeats(name: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for identifier in ids:
        if identifier in seen:
            raise DataError(f"data {name}: image ids must be unique, got '{identifier}' twice. Remove one of them.")
        seen.add(identifier)


def _refuse_straddlers(name: str, table: ImageTable) -> None:
    """Refuse a class whose images are in different coarse classes."""
    if table.coarse_labels is None:
        return
    assert len(table.coarse_labels) == len(table)
    coarse_of = np.empty(len(table.class_names), np.int64)
    coarse_of[table.labels] = table.coarse_labels
    odd = np.flatnonzero(coarse_of[table.labels] != table.coarse_labels)
    if len(odd):
        label = table.labels[odd[0]]
        both = sorted({table.coarse_names[place] for place in table.coarse_labels[table.labels == label]})
        raise DataError(
            f"data {name}: a class must lie in one coarse class, got '{table.class_names[label]}' in "
            f"{' and '.join(both)}. Correct the coarse classes."
        )


@dataclass(frozen=True)
class SplitCounts:
    """How many classes and images a data set has, channels of an image, and coarse classes; None: it has none."""

    train_classes: int
    train_images: int
    test_classes: int
    test_images: int
    channels: int
    coarse_classes: int | None = None


class DatasetOptions(Options, ABC):
    """Options of a data set."""

    card: ClassVar[Card]
    """What is known of the data set: who published it, and how it is read."""
    name: str
    """Key in the data table."""

    @abstractmethod
    def load(self, cache_dir: Path) -> ImageDataset:
        """Read the table. Large prepared files may be kept below ``cache_dir`` and shared by processes.

        Raises:
            DataError: the data are absent or break a rule; the message names the file or class.
        """

    def published_counts(self) -> SplitCounts | None:
        """Return the published counts where the data set has one fixed form: a plan can be made from them."""
        return None
