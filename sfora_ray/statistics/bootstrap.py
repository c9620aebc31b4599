"""The bias-corrected and accelerated bootstrap of a mean (Efron, JASA 1987), by ``scipy.stats.bootstrap``.

It believes nothing about the shape of the distribution, and pays for it with few values: over 5 normal ones its
"95 %" interval holds the mean about 82 times in 100, over 10 about 90 times, and only from some 100 on does it keep
its promise. What is printed over seeds is therefore Student's interval; this one is a second opinion for many values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from sfora_ray.arrays import Float
from sfora_ray.randomness import numpy_generator
from sfora_ray.statistics.intervals import CONFIDENCE, Interval, finite_values


def bootstrap_interval(values: Sequence[float] | Float, seed: int, *, draws: int = 2000) -> Interval:
    """Return the mean of ``n`` independent values with its BCa interval.

    Args:
        values: of independent runs.
        seed: of the draws.
        draws: bootstrap samples.

    Raises:
        DataError: no values, or one that is not finite.
    """
    numbers = finite_values(values)
    mean = float(numbers.mean())
    if len(numbers) == 1:
        return Interval(mean, None, 1, None)
    std = float(numbers.std(ddof=1))
    if np.ptp(numbers) == 0:
        return Interval(mean, std, len(numbers), (mean, mean))
    ends = stats.bootstrap(
        (numbers,),
        np.mean,
        n_resamples=draws,
        confidence_level=CONFIDENCE,
        method="BCa",
        rng=numpy_generator(seed, "bootstrap", "bca"),
    ).confidence_interval
    return Interval(mean, std, len(numbers), (float(ends.low), float(ends.high)))
