"""The standardised mean difference of pairs, with its exact interval.

``d_z`` is the mean of the differences over their standard deviation, times the factor that takes its small-sample
bias away (Hedges, Journal of Educational Statistics 1981, eq. 6e, in its exact form with gamma functions). If
differences are normal, ``mean / std * sqrt(n)`` follows a noncentral t; the interval are the noncentralities under
which the value seen would lie at the upper and at the lower 2.5 % point (Steiger and Fouladi, 1997).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from sfora_ray.arrays import Float
from sfora_ray.statistics.intervals import CONFIDENCE, finite_pairs

_FEWEST = 3
_TAIL = (1 - CONFIDENCE) / 2
_LOWEST = -2.0
_SAME_TO_ROUNDING = 1e-9


@dataclass(frozen=True)
class Effect:
    """How large a difference is in units of its own spread from seed to seed.

    Attributes:
        d_z: bias-corrected.
        ci95: of the true value; None where the effect is too large for the interval to be computed.
        n: pairs.
    """

    d_z: float
    ci95: tuple[float, float] | None
    n: int


def effect_size(first: Sequence[float] | Float, second: Sequence[float] | Float) -> Effect | None:
    """Return the effect of ``first - second``, pair by pair.

    None of fewer than 3 pairs, where no correction of the bias exists, and where all differences are equal.

    Raises:
        DataError: different lengths, no values, or one that is not finite.
    """
    left, right = finite_pairs(first, second)
    differences = left - right
    if len(differences) < _FEWEST or has_no_spread(left, right):
        return None
    raw = float(differences.mean() / differences.std(ddof=1))
    return Effect(raw * hedges_factor(len(differences) - 1), _interval(raw, len(differences)), len(differences))


def has_no_spread(first: Float, second: Float) -> bool:
    """Return whether all paired differences are one number, up to the rounding of what they are taken of."""
    scale = max(float(np.abs(first).max()), float(np.abs(second).max()))
    return float(np.ptp(first - second)) <= _SAME_TO_ROUNDING * scale


def hedges_factor(freedom: int) -> float:
    """Return what a standardised mean with ``freedom`` degrees is multiplied by to be unbiased; 0 of one degree."""
    if freedom == 1:
        return 0.0
    return math.exp(special.gammaln(freedom / 2) - special.gammaln((freedom - 1) / 2)) / math.sqrt(freedom / 2)


def _interval(raw: float, num_pairs: int) -> tuple[float, float] | None:
    root = math.sqrt(num_pairs)
    # Computed for a positive effect and mirrored: the far tail of a negative one is lost to rounding.
    ends = _noncentralities(abs(raw) * root, num_pairs - 1)
    if ends is None:
        return None
    low, high = ends[0] / root, ends[1] / root
    return (low, high) if raw >= 0 else (-high, -low)


def _noncentralities(statistic: float, freedom: int) -> tuple[float, float] | None:
    def below(noncentrality: float) -> float:
        return float(stats.nct.cdf(statistic, freedom, noncentrality))

    # No end lies below that of an effect of zero, which is -1.96, nor six standard errors above the value seen.
    reach = 6 * math.sqrt(1 + statistic**2 / (2 * freedom)) + 1
    try:
        low = optimize.brentq(lambda place: below(place) - (1 - _TAIL), _LOWEST, statistic)
        high = optimize.brentq(lambda place: below(place) - _TAIL, statistic, statistic + reach)
    except ValueError:
        return None
    return float(low), float(high)
