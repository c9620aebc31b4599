"""Holm's step-down correction for several tests (Holm, Scandinavian Journal of Statistics 1979)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfora_ray.errors import DataError


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return adjusted p-values, in the given order: the chance of any false alarm stays below the level.

    The i-th smallest of ``m`` is multiplied by ``m - i + 1``, then raised to the largest before it, then capped at 1.

    Raises:
        DataError: one is not within 0..1.
    """
    numbers = np.asarray(p_values, dtype=np.float64)
    if numbers.ndim != 1 or not ((numbers >= 0) & (numbers <= 1)).all():
        raise DataError(f"Holm: p-values must lie within 0..1, got {list(p_values)}. Pass one for each test.")
    order = np.argsort(numbers, kind="stable")
    steps = numbers[order] * np.arange(len(numbers), 0, -1)
    adjusted = np.empty(len(numbers))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return tuple(float(value) for value in adjusted)
