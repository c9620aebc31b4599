"""Try every image of a data set, for a list of all that cannot be read rather than the first of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sfora_ray.data.base import ImageDataset, ImageTable
from sfora_ray.errors import DataError, StorageError


@dataclass(frozen=True)
class Problem:
    """An image that cannot be read.

    Attributes:
        split: ``train`` or ``test``.
        id: the image's id in the data set.
        reason: names the file and what is wrong with it.
    """

    split: str
    id: str
    reason: str


def check_images(dataset: ImageDataset, on_progress: Callable[[int, int], None]) -> tuple[Problem, ...]:
    """Decode every image and return the unreadable ones, in the order of the tables.

    Args:
        dataset: its own sources are read, so check it before its images are cached.
        on_progress: called with ``(done, total)``.
    """
    rows = [("train", dataset.train, row) for row in range(len(dataset.train))]
    rows += [("test", dataset.test, row) for row in range(len(dataset.test))]
    problems: list[Problem] = []
    with ThreadPoolExecutor() as threads:
        for done, problem in enumerate(threads.map(_problem, rows), start=1):
            if problem is not None:
                problems.append(problem)
            on_progress(done, len(rows))
    return tuple(problems)


def _problem(place: tuple[str, ImageTable, int]) -> Problem | None:
    split, table, row = place
    try:
        table.images[row]
    except (DataError, StorageError) as error:
        return Problem(split, table.ids[row], str(error))
    return None
