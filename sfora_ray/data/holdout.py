"""Held-out training classes: what a member is selected on when the test classes must stay unseen."""

from __future__ import annotations

import numpy as np

from sfora_ray.arrays import Int64
from sfora_ray.data.base import ImageTable
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator


def hold_out_classes(table: ImageTable, *, fraction: float, seed: int) -> tuple[ImageTable, ImageTable]:
    """Split a table by class into ``(train, validation)``; no class is in both.

    Args:
        table: the training split.
        fraction: share of classes that go to validation, in (0, 1); two at least, so that retrieval can err.
        seed: names the choice; one for a whole pack, so that its members are selected on the same classes.

    Raises:
        DataError: too few classes to leave two on each side.
    """
    num_classes = len(table.class_names)
    held = max(2, round(fraction * num_classes))
    if not 0 < fraction < 1 or num_classes - held < 2:
        raise DataError(
            f"hold-out: two classes must stay on each side, got fraction {fraction} of {num_classes} "
            "classes. Lower the fraction, or select by `last`."
        )
    chosen = numpy_generator(seed, "hold-out").permutation(num_classes)[:held]
    return _split(table, chosen)


def hold_out_fold(table: ImageTable, *, folds: int, fold: int, seed: int) -> tuple[ImageTable, ImageTable]:
    """Deal the classes to ``folds`` parts and split a table into ``(train, validation)``; no class is in both.

    Every class is held out by exactly one fold. Parts differ in size by one class at most.

    Args:
        table: the training split.
        folds: number of parts, 2 or more.
        fold: the part that is held out, counted from 0.
        seed: names the deal; one for all folds.

    Raises:
        DataError: a part would have fewer than two classes.
    """
    num_classes = len(table.class_names)
    if num_classes < 2 * folds:
        raise DataError(
            f"hold-out: every fold needs two classes, got {folds} folds of {num_classes} classes. "
            f"Use {num_classes // 2} folds or fewer."
        )
    chosen = numpy_generator(seed, "folds of classes", folds).permutation(num_classes)[fold::folds]
    return _split(table, chosen)


def _split(table: ImageTable, held: Int64) -> tuple[ImageTable, ImageTable]:
    in_validation = np.isin(table.labels, held)
    return table.rows(np.flatnonzero(~in_validation)), table.rows(np.flatnonzero(in_validation))
