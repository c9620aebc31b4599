"""How many seeds a paired comparison needs, by the noncentral t distribution (Cohen, 1988)."""

from __future__ import annotations

import math

from scipy import stats

from sfora_ray.errors import DataError

_LARGE = 20_000
_NEVER_WRONG = 6.0
_BEYOND_DOUBT = 20.0


def paired_power(std_of_differences: float, difference: float, num_pairs: int, *, alpha: float = 0.05) -> float:
    """Return the chance that a two-sided paired t test over ``num_pairs`` sees a true difference of this size."""
    freedom = num_pairs - 1
    critical = float(stats.t.isf(alpha / 2, freedom))
    noncentrality = abs(difference) / std_of_differences * math.sqrt(num_pairs)
    if noncentrality > _BEYOND_DOUBT * critical:
        return 1.0
    right_way = float(stats.nct.sf(critical, freedom, noncentrality))
    # Seen the wrong way round: less than one in 10^9 from here on, where SciPy's tail becomes NaN.
    return right_way if noncentrality > _NEVER_WRONG else right_way + _wrong_way(critical, freedom, noncentrality)


def _wrong_way(critical: float, freedom: int, noncentrality: float) -> float:
    return float(stats.nct.cdf(-critical, freedom, noncentrality))


def seeds_needed(std_of_differences: float, difference: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return the least number of pairs with which a paired t test sees ``difference`` with this power; 2 at least.

    Args:
        std_of_differences: over seeds, as a pilot found it; with few seeds it is itself a guess.
        difference: the true difference to be seen; its sign does not matter.
        power: chance to see it.
        alpha: chance of a false alarm.

    Raises:
        DataError: a spread below zero, a difference of zero, or chances that are none.
    """
    _refuse_nonsense(std_of_differences, difference, power, alpha)
    if std_of_differences == 0:
        return 2
    guess = _normal_guess(std_of_differences, difference, power, alpha)
    # From there on Student's t is the normal distribution, to less than one pair.
    return guess if guess > _LARGE else _search(std_of_differences, difference, power, alpha)


def _normal_guess(std: float, difference: float, power: float, alpha: float) -> int:
    reach = float(stats.norm.isf(alpha / 2)) + float(stats.norm.ppf(power))
    # The second term is what Student's t asks beyond the normal distribution (Guenther, 1981).
    return math.ceil((max(reach, 0.0) * std / abs(difference)) ** 2 + float(stats.norm.isf(alpha / 2)) ** 2 / 2)


def _search(std: float, difference: float, power: float, alpha: float) -> int:
    enough = 2
    while paired_power(std, difference, enough, alpha=alpha) < power:
        enough *= 2
    few = enough // 2
    while enough - few > 1:
        middle = (few + enough) // 2
        if paired_power(std, difference, middle, alpha=alpha) < power:
            few = middle
        else:
            enough = middle
    return enough


def _refuse_nonsense(std: float, difference: float, power: float, alpha: float) -> None:
    if not (std >= 0 and math.isfinite(std) and math.isfinite(difference) and difference):
        raise DataError(
            f"seeds needed: must have a spread of at least 0 and a difference other than 0, got {std} and "
            f"{difference}. No number of seeds shows a difference of zero."
        )
    if not (0 < alpha < 1 and alpha < power < 1):
        raise DataError(
            f"seeds needed: chances must be between 0 and 1, and the power above alpha, got power {power} and alpha "
            f"{alpha}. Use .8 and .05."
        )
