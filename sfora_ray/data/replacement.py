"""Another image of the same class for one that cannot be read; a resumed member chooses the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfora_ray.arrays import Int64, UInt8
from sfora_ray.data.base import ImageTable
from sfora_ray.data.unreadable import UnreadableImage, UnreadableImageError
from sfora_ray.randomness import numpy_generator


@dataclass(frozen=True)
class Draw:
    """Names the stream that a replacement is chosen from, and the rows it is better not chosen from.

    Attributes:
        seed: the member's.
        path: the rest of the stream's name, such as epoch, step and position.
        avoid: rows that are in the batch already; taken if the class has no other.
    """

    seed: int
    path: tuple[str | int, ...]
    avoid: Int64


@dataclass(frozen=True)
class Reading:
    """What came of reading one image.

    Attributes:
        pixels: of the image, or of the one that stands in for it; None if there is none.
        unreadable: what could not be read on the way.
    """

    pixels: UInt8 | None
    unreadable: tuple[UnreadableImage, ...] = ()


def read_row(table: ImageTable, row: int, draw: Draw | None) -> Reading:
    """Read an image, or another of its class where ``draw`` says which; None accepts no other."""
    missing: list[UnreadableImage] = []
    for candidate in _candidates(table, row, draw):
        try:
            return Reading(table.images[candidate], tuple(missing))
        except UnreadableImageError as error:
            missing.append(UnreadableImage(table.ids[candidate], str(error)))
    return Reading(None, tuple(missing))


def _candidates(table: ImageTable, row: int, draw: Draw | None) -> Iterator[int]:
    yield row
    if draw is None:
        return
    others = np.flatnonzero(table.labels == table.labels[row])
    others = numpy_generator(draw.seed, "replacement", *draw.path).permutation(others[others != row])
    taken = np.isin(others, draw.avoid)
    yield from (int(other) for other in (*others[~taken], *others[taken]))
