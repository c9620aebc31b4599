"""Omniglot (Lake et al., Science 2015): handwritten characters of 50 alphabets, 20 writers each.

Archives are read as published, without extracting them, or as folders. The default is the split of this
project's benchmarks: all of ``images_background_small1`` trains (136 characters), three alphabets of
``small2`` that are not in it test (106). ``train: [images_background]`` with ``test: [images_evaluation]``
and no ``test_alphabets`` is the authors' split. Strokes come out white on black, the authors' files are the
reverse: zero padding and shifts then add paper, not ink.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, ClassVar, Literal

import numpy as np
from PIL import Image, ImageOps
from pydantic import Field, field_validator

from sfora_ray.arrays import UInt8
from sfora_ray.card import Card
from sfora_ray.data.base import DatasetOptions, ImageDataset, make_dataset
from sfora_ray.data.images import DAMAGE, to_pixels
from sfora_ray.data.paths import is_below
from sfora_ray.data.prepared import PreparedSplit, prepare_once
from sfora_ray.errors import DataError

_FORMAT = 1
_LARGEST_DRAWING = 100_000
"""Bytes; the published drawings, 105 pixels a side and two colours, take a few hundred."""
_SIDE = 105


class OmniglotOptions(DatasetOptions):
    """Omniglot, as published or as torchvision extracts it."""

    card: ClassVar[Card] = Card(
        title="Omniglot",
        paper="Lake, Salakhutdinov, Tenenbaum, Science 2015",
        checked="the two small published archives where they are at hand; generated archives and folders in tests",
        differences="strokes are white on black; the default split is this project's",
    )
    name: Literal["omniglot"] = "omniglot"
    root: Path
    """Folder with the archives, with their extracted folders, or with torchvision's ``omniglot-py``."""
    train: tuple[str, ...] = ("images_background_small1",)
    """Archives whose alphabets train, without ``.zip``."""
    train_alphabets: tuple[str, ...] | None = None
    """Which of their alphabets; null: all."""
    test: tuple[str, ...] = ("images_background_small2",)
    """Archives whose alphabets test."""
    test_alphabets: tuple[str, ...] | None = ("Japanese_(katakana)", "Sanskrit", "Tagalog")
    """Which of their alphabets; null: all. Greek and Latin are in both small archives."""
    image_size: int = Field(28, ge=8, le=105)
    """Side of the square images, from 105."""

    @field_validator("train", "test")
    @classmethod
    def _are_names(cls, parts: tuple[str, ...]) -> tuple[str, ...]:
        if any(not is_below(part) or "/" in part for part in parts):
            raise ValueError("must be names of archives in `root`, not paths")
        return parts

    def load(self, cache_dir: Path) -> ImageDataset:
        """Read or prepare both splits.

        Raises:
            DataError: an archive is absent or damaged, or an alphabet is in both splits.
        """
        train = [_find(self.root, part) for part in self.train]
        test = [_find(self.root, part) for part in self.test]
        key = _key(self, [*train, *test])
        tables = prepare_once(
            cache_dir / "omniglot" / key,
            lambda: _make(self, train, test),
        )
        return make_dataset(name="omniglot", channels=1, train=tables.train, test=tables.test, notes=tables.notes)


@dataclass(frozen=True)
class _Drawing:
    alphabet: str
    character: str
    stem: str
    open: Callable[[], IO[bytes]]


def _make(
    options: OmniglotOptions, train: list[Path], test: list[Path]
) -> tuple[PreparedSplit, PreparedSplit, tuple[str, ...]]:
    with ExitStack() as stack:
        train_rows = _select(train, options.train_alphabets, stack)
        test_rows = _select(test, options.test_alphabets, stack)
        shared = sorted({row.alphabet for row in train_rows} & {row.alphabet for row in test_rows})
        if shared:
            raise DataError(
                f"data omniglot: an alphabet must be in one split, got {', '.join(shared)} in both. "
                "Leave it out of `train_alphabets` or `test_alphabets`."
            )
        notes = ("strokes are white on black, the reverse of the published files",)
        return _split(train_rows, options.image_size), _split(test_rows, options.image_size), notes


def _find(root: Path, part: str) -> Path:
    for place in (root / f"{part}.zip", root / part, root / "omniglot-py" / part):
        if place.exists():
            return place
    raise DataError(
        f"{root}: no {part}.zip and no folder {part} or omniglot-py/{part} there. "
        "Download the archive from github.com/brendenlake/omniglot, or correct `root`."
    )


def _key(options: OmniglotOptions, parts: list[Path]) -> str:
    hasher = hashlib.blake2b(options.model_dump_json(exclude={"root"}).encode(), digest_size=8)
    hasher.update(f"{_FORMAT}".encode())
    for part in parts:
        files = [part] if part.is_file() else sorted(part.rglob("*.png"))
        for file in files:
            state = file.stat()
            hasher.update(f"{file.resolve()}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    return hasher.hexdigest()


def _select(parts: list[Path], alphabets: tuple[str, ...] | None, stack: ExitStack) -> list[_Drawing]:
    rows = [row for part in parts for row in (_zipped(part, stack) if part.is_file() else _extracted(part))]
    found = sorted({row.alphabet for row in rows})
    absent = [name for name in alphabets or () if name not in found]
    if absent:
        raise DataError(
            f"data omniglot: alphabets must be among {', '.join(found)}, got {', '.join(absent)}. Correct the name."
        )
    chosen = found if alphabets is None else alphabets
    return sorted(
        (row for row in rows if row.alphabet in chosen),
        key=lambda row: (row.alphabet, row.character, row.stem),
    )


def _zipped(part: Path, stack: ExitStack) -> Iterator[_Drawing]:
    try:
        archive = stack.enter_context(zipfile.ZipFile(part))
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{part}: not a readable archive ({error}). Download it again.") from error
    for name in archive.namelist():
        path = PurePosixPath(name)
        if not is_below(name):
            raise DataError(f"{part}: a member must lie below the archive, got '{name}'. Download it again.")
        if path.suffix == ".png" and len(path.parts) == 4 and not path.name.startswith("."):
            _refuse_large(part, archive.getinfo(name))
            yield _Drawing(path.parts[1], path.parts[2], path.stem, _opener(archive, name))


def _refuse_large(part: Path, member: zipfile.ZipInfo) -> None:
    if member.file_size > _LARGEST_DRAWING:
        raise DataError(
            f"{part}: a drawing takes {_LARGEST_DRAWING} bytes or less, got '{member.filename}' of {member.file_size}. "
            "Download it again."
        )


def _opener(archive: zipfile.ZipFile, name: str) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(name)


def _file_opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: path.open("rb")


def _extracted(part: Path) -> Iterator[_Drawing]:
    for path in part.glob("*/*/*.png"):
        if not path.name.startswith("."):
            yield _Drawing(path.parent.parent.name, path.parent.name, path.stem, _file_opener(path))


def _split(rows: list[_Drawing], size: int) -> PreparedSplit:
    return PreparedSplit(
        tuple(f"{row.alphabet}/{row.character}/{row.stem}" for row in rows),
        tuple(f"{row.alphabet}/{row.character}" for row in rows),
        np.stack([_read(row, size) for row in rows]) if rows else np.zeros((0, size, size, 1), np.uint8),
    )


def _read(row: _Drawing, size: int) -> UInt8:
    try:
        with row.open() as stream, Image.open(stream, formats=("PNG",)) as image:
            if image.size != (_SIDE, _SIDE):
                raise ValueError(f"its sides must be {_SIDE}, got {image.size}")
            white_on_black = ImageOps.invert(image.convert("L"))
            return to_pixels(white_on_black.resize((size, size), Image.Resampling.BILINEAR), channels=1)
    except (*DAMAGE, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise DataError(
            f"data omniglot: {row.alphabet}/{row.character}/{row.stem} is not a readable image ({error}). "
            "Download the archive again."
        ) from error
