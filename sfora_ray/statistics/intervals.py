"""Means with their 95 % intervals, over seeds and over classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sfora_ray.arrays import Float, Float64, Int64
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator

CONFIDENCE = 0.95
_CHUNK = 2**20


@dataclass(frozen=True)
class Interval:
    """A mean and how sure it is.

    Attributes:
        mean: of the values.
        std: their sample standard deviation (``n - 1``); None of one value.
        n: independent values behind the mean.
        ci95: lower and upper end; None where one value, or none, tells nothing about the spread.
    """

    mean: float
    std: float | None
    n: int
    ci95: tuple[float, float] | None

    def record(self) -> dict[str, float | int | list[float] | None]:
        """Return ``{mean, std, n, ci95: [low, high]}``, plain JSON."""
        ends = None if self.ci95 is None else list(self.ci95)
        return {"mean": self.mean, "std": self.std, "n": self.n, "ci95": ends}


def t_interval(values: Sequence[float] | Float) -> Interval:
    """Return the mean of ``n`` independent values with Student's interval.

    Raises:
        DataError: no values, or one that is not finite.
    """
    numbers = finite_values(values)
    mean = float(numbers.mean())
    if len(numbers) == 1:
        return Interval(mean, None, 1, None)
    std = float(numbers.std(ddof=1))
    return Interval(mean, std, len(numbers), around(mean, std / math.sqrt(len(numbers)), len(numbers) - 1))


def paired_interval(first: Sequence[float] | Float, second: Sequence[float] | Float) -> Interval:
    """Return the interval of ``first - second``, pair by pair, such as two losses on the same seeds.

    Raises:
        DataError: different lengths, or as for :func:`t_interval`.
    """
    left, right = finite_pairs(first, second)
    return t_interval(left - right)


def around(mean: float, standard_error: float, freedom: int) -> tuple[float, float]:
    """Return the ends of Student's interval with ``freedom`` degrees."""
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * standard_error
    return mean - reach, mean + reach


def cluster_bootstrap(values: Float, clusters: Int64, seed: int, *, draws: int = 2000) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of the mean of ``(Q,)`` values when whole clusters are drawn again.

    Queries of a class rise and fall together, so classes are what is drawn: only their sums and counts are
    needed. For two systems on the same queries, pass the differences of their values.

    Args:
        values: a metric of each query.
        clusters: ``(Q,)`` the class of each query.
        seed: of the draws.
        draws: bootstrap samples.

    Returns:
        Lower and upper end, or None of a single class.

    Raises:
        DataError: no values, one that is not finite, or another number of clusters.
    """
    numbers = finite_values(values)
    if np.shape(clusters) != numbers.shape:
        raise DataError(
            f"bootstrap: each value needs its class, got {len(numbers)} values and classes of shape "
            f"{np.shape(clusters)}. Pass labels[per_query.rows]."
        )
    _, places = np.unique(clusters, return_inverse=True)
    counts = np.bincount(places).astype(np.float64)  # (C,)
    if len(counts) < 2:
        return None
    sums: Float64 = np.bincount(places, numbers).astype(np.float64)  # (C,)
    means = _bootstrap_means(sums, counts, numpy_generator(seed, "bootstrap"), draws)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _bootstrap_means(sums: Float64, counts: Float64, generator: np.random.Generator, draws: int) -> Float64:
    # In chunks: all at once would be draws x classes, 180 MB for 11,316 classes.
    most = max(1, _CHUNK // len(counts))
    parts = []
    for start in range(0, draws, most):
        times = generator.multinomial(
            len(counts), np.full(len(counts), 1 / len(counts)), size=min(most, draws - start)
        )  # (n, C)
        parts.append(times @ sums / (times @ counts))
    return np.concatenate(parts)


def finite_pairs(first: Sequence[float] | Float, second: Sequence[float] | Float) -> tuple[Float64, Float64]:
    """Return both sides as ``(n,)`` float64.

    Raises:
        DataError: different lengths, no values, or one that is not finite.
    """
    left, right = finite_values(first), finite_values(second)
    if len(left) != len(right):
        raise DataError(
            f"paired interval: both sides need the same seeds, got {len(left)} and {len(right)} values. "
            "Compare the seeds that both have."
        )
    return left, right


def finite_values(values: Sequence[float] | Float) -> Float64:
    """Return the values as ``(n,)`` float64.

    Raises:
        DataError: no values, or one that is not finite.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise DataError(
            f"interval: needs a list of finite numbers, got shape {numbers.shape}"
            f"{'' if np.isfinite(numbers).all() else ' with NaN or infinity'}. Leave failed members out."
        )
    return numbers
