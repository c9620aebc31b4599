"""Held-out training classes: what a member is selected on when the test classes must stay unseen."""

from __future__ import annotations

import numpy as np

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
    in_validation = np.isin(table.labels, chosen)
    return table.rows(np.flatnonzero(~in_validation)), table.rows(np.flatnonzero(in_validation))
