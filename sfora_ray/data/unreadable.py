"""Images that cannot be read: counted, and refused once there are more than somebody has allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfora_ray.data.base import ImageDataset, ImageTable, digest_of_rows
from sfora_ray.errors import DataError

_NAMED = 3


class UnreadableImageError(DataError):
    """This one image cannot be read; others may."""


@dataclass(frozen=True)
class UnreadableImage:
    """An image that cannot be read.

    Attributes:
        id: the image's id in its data set.
        reason: one sentence with the path and what is wrong there.
    """

    id: str
    reason: str


class Tolerance:
    """Distinct unreadable images so far, at most ``at_most`` of them; none where it is 0."""

    def __init__(self, at_most: int, found: Sequence[UnreadableImage] = ()) -> None:
        self.at_most = at_most
        self.found = list(found)

    def add(self, image: UnreadableImage) -> bool:
        """Count an image, once however often it comes; return whether it is new.

        Raises:
            DataError: it is one too many; the message names the first few.
        """
        if any(image.id == known.id for known in self.found):
            return False
        self.found.append(image)
        if len(self.found) > self.at_most:
            raise DataError(self._refusal())
        return True

    def _refusal(self) -> str:
        if self.at_most == 0:
            return self.found[0].reason
        reasons = "; ".join(image.reason for image in self.found[:_NAMED])
        return (
            f"input.max_unreadable: at most {self.at_most} images may be unreadable, got {len(self.found)} or more. "
            f"Repair the data or raise the number. The first are {reasons}"
        )


def names_of(ids: Sequence[str]) -> str:
    """Return the first few ids, and how many more there are."""
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(ids[:_NAMED]) + more


def without(dataset: ImageDataset, left_out: Sequence[str]) -> ImageDataset:
    """Return the data set without the images of these ids: with its own digest and a note of what is missing.

    Classes that keep no image are dropped.

    Raises:
        DataError: a split keeps no image.
    """
    absent = set(left_out)
    if not absent.intersection((*dataset.train.ids, *dataset.test.ids)):
        return dataset
    train, test = _kept(dataset.train, absent), _kept(dataset.test, absent)
    if not len(train) or not len(test):
        raise DataError(f"data {dataset.name}: no image of a split can be read, got {names_of(left_out)}. Repair them.")
    note = f"{len(left_out)} unreadable images left out: {names_of(left_out)}"
    return replace(dataset, train=train, test=test, digest=digest_of_rows(train, test), notes=(*dataset.notes, note))


def _kept(table: ImageTable, absent: set[str]) -> ImageTable:
    rows = [row for row, identifier in enumerate(table.ids) if identifier not in absent]
    return table if len(rows) == len(table) else table.rows(np.asarray(rows, dtype=np.int64))
