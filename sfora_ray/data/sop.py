"""Stanford Online Products (Oh Song et al., CVPR 2016): photos of products, with the official lists.

``Ebay_train.txt`` and ``Ebay_test.txt`` name class and super class of every image; the split is theirs, not two
halves of the sorted classes. Classes are known by their number, so lists that number them from 0 give the same
tables; the coarse classes are the twelve folders.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from sfora_ray.card import Card
from sfora_ray.data.base import DatasetOptions, ImageDataset, SplitCounts
from sfora_ray.data.listed import Listed, Listing, read_lines
from sfora_ray.errors import DataError

_COUNTS = SplitCounts(
    train_classes=11_318,
    train_images=59_551,
    test_classes=11_316,
    test_images=60_502,
    channels=3,
    coarse_classes=12,
)
_HEADER = ["image_id", "class_id", "super_class_id", "path"]


class SopOptions(DatasetOptions):
    """Stanford Online Products as published."""

    card: ClassVar[Card] = Card(
        title="Stanford Online Products",
        paper="Oh Song, Xiang, Jegelka, Savarese, CVPR 2016",
        checked="counts of both splits and of the coarse classes on loading; a generated tree of the real shape in "
        "tests",
    )
    name: Literal["sop"] = "sop"
    root: Path
    """The extracted ``Stanford_Online_Products`` folder, or the folder it lies in."""

    def load(self, cache_dir: Path) -> ImageDataset:  # noqa: ARG002
        """Read the official lists; no image is decoded yet.

        Raises:
            DataError: a list or an image is absent, or the counts are not the published ones.
        """
        inner = self.root / "Stanford_Online_Products"
        root = inner if inner.is_dir() else self.root
        train, test = (_read(root / f"Ebay_{split}.txt") for split in ("train", "test"))
        return Listed("sop", "Stanford Online Products", root, root, "Ebay_*.txt", train, test, _COUNTS).dataset()

    def published_counts(self) -> SplitCounts:
        """Return the counts of the published split."""
        return _COUNTS


def _read(path: Path) -> Listing:
    lines = read_lines(path, "Set `root` to the extracted Stanford_Online_Products folder.")
    if not lines or lines[0].split() != _HEADER:
        raise DataError(
            f"{path}: the first line must be '{' '.join(_HEADER)}', got '{lines[0] if lines else ''}'. "
            "Extract the published archive again."
        )
    rows = [_fields(path, number, line) for number, line in enumerate(lines[1:], start=2)]
    files = tuple(file for _, file in rows)
    return Listing(
        files,
        tuple(f"{number:05d}" for number, _ in rows),
        files,
        tuple(file.split("/")[0].removesuffix("_final") for file in files),
    )


def _fields(path: Path, line_number: int, line: str) -> tuple[int, str]:
    fields = line.split(maxsplit=3)
    if len(fields) != 4 or not fields[1].isdecimal():
        raise DataError(
            f"{path}, line {line_number}: image_id, class_id, super_class_id and path are needed, got '{line}'. "
            "Extract the published archive again."
        )
    # Lists that were written anew on Windows have its separator.
    return int(fields[1]), fields[3].replace("\\", "/")
