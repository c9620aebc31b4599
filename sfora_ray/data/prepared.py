"""Small data sets that are prepared once: pixels in one ``.npy`` a split, rows in a ``table.json``."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfora_ray.arrays import UInt8
from sfora_ray.data.base import ImageSource, ImageTable
from sfora_ray.data.locks import exclusive_lock
from sfora_ray.data.sources import ArrayFile
from sfora_ray.files import read_json, write_bytes, write_json


@dataclass(frozen=True, eq=False)
class PreparedSplit:
    """One split before it is written.

    Attributes:
        ids: ``N`` ids.
        class_of: ``N`` class names, one an image.
        pixels: ``(N, H, W, C)`` uint8.
    """

    ids: tuple[str, ...]
    class_of: tuple[str, ...]
    pixels: UInt8


@dataclass(frozen=True)
class PreparedTables:
    """Both splits, mapped from disk, and the notes that were written with them."""

    train: ImageTable
    test: ImageTable
    notes: tuple[str, ...]


def prepare_once(
    folder: Path, make: Callable[[], tuple[PreparedSplit, PreparedSplit, tuple[str, ...]]]
) -> PreparedTables:
    """Open the prepared splits of ``folder``; the first caller makes them, the others wait and read.

    Args:
        folder: named by everything that the pixels depend on.
        make: returns train, test and notes.
    """
    index = folder / "table.json"
    with exclusive_lock(folder.with_name(f"{folder.name}.lock")):
        if not index.exists():
            train, test, notes = make()
            _write_pixels(folder / "train.npy", train.pixels)
            _write_pixels(folder / "test.npy", test.pixels)
            # Last, for its presence says that the pixels are whole.
            write_json(index, {"train": _rows(train), "test": _rows(test), "notes": list(notes)})
    record = read_json(index)
    return PreparedTables(
        _table(record["train"], folder / "train.npy"),
        _table(record["test"], folder / "test.npy"),
        tuple(record["notes"]),
    )


def _write_pixels(path: Path, pixels: UInt8) -> None:
    buffer = io.BytesIO()
    np.save(buffer, pixels, allow_pickle=False)
    write_bytes(path, buffer.getvalue())


def _rows(split: PreparedSplit) -> dict[str, list[str]]:
    return {"ids": list(split.ids), "class_of": list(split.class_of)}


def _table(rows: dict[str, Any], path: Path) -> ImageTable:
    return table_of(tuple(rows["ids"]), tuple(rows["class_of"]), ArrayFile(path))


def table_of(
    ids: tuple[str, ...],
    class_of: tuple[str, ...],
    images: ImageSource,
    *,
    coarse_of: tuple[str, ...] = (),
    coarse_names: tuple[str, ...] = (),
) -> ImageTable:
    """Return a table whose classes are the sorted distinct names of ``class_of``.

    Args:
        ids: ``N`` ids.
        class_of: ``N`` class names.
        images: the pixels.
        coarse_of: ``N`` of ``coarse_names``; empty: no coarse classes.
        coarse_names: the coarse classes of all splits, sorted.
    """
    names, labels = np.unique(np.asarray(class_of, dtype=np.str_), return_inverse=True)
    class_names = tuple(str(name) for name in names)
    if not coarse_of:
        return ImageTable(ids, labels.astype(np.int64), class_names, images)
    coarse = np.searchsorted(np.asarray(coarse_names), np.asarray(coarse_of)).astype(np.int64)
    return ImageTable(ids, labels.astype(np.int64), class_names, images, coarse, coarse_names)
