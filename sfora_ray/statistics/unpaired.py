"""Two methods on different seeds: Welch's test (Biometrika 1947), which lets the two spreads differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sfora_ray.arrays import Float
from sfora_ray.errors import DataError
from sfora_ray.statistics.intervals import CONFIDENCE, Interval, finite_values, t_interval


@dataclass(frozen=True)
class WelchComparison:
    """A comparison of independent values.

    Attributes:
        first: mean and Student's interval.
        second: the same of the other side.
        difference: mean, number of values of both sides and Welch's interval of ``first - second``; no ``std``.
        p_value: two-sided.
    """

    first: Interval
    second: Interval
    difference: Interval
    p_value: float


def compare_unpaired(first: Sequence[float] | Float, second: Sequence[float] | Float) -> WelchComparison:
    """Compare independent values with independent others.

    Raises:
        DataError: a side has fewer than two values, or one that is not finite.
    """
    left, right = finite_values(first), finite_values(second)
    if min(len(left), len(right)) < 2:
        raise DataError(f"Welch's test: each side needs two seeds, got {len(left)} and {len(right)}. Train more seeds.")
    mean, num_values = float(left.mean() - right.mean()), len(left) + len(right)
    if np.ptp(left) == 0 and np.ptp(right) == 0:
        ends, p_value = (mean, mean), 1.0 if mean == 0 else 0.0
    else:
        found = stats.ttest_ind(left, right, equal_var=False)
        bounds = found.confidence_interval(CONFIDENCE)
        ends, p_value = (float(bounds.low), float(bounds.high)), float(found.pvalue)
    return WelchComparison(t_interval(left), t_interval(right), Interval(mean, None, num_values, ends), p_value)
