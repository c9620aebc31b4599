"""Two methods on the same seeds: everything that is said about their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from sfora_ray.arrays import Float, Float64
from sfora_ray.statistics.effect import Effect, effect_size, has_no_spread
from sfora_ray.statistics.intervals import Interval, finite_pairs, paired_interval, t_interval
from sfora_ray.statistics.permutation import permutation_test
from sfora_ray.statistics.power import seeds_needed


@dataclass(frozen=True)
class PairedComparison:
    """A paired comparison.

    Attributes:
        first: mean over the pairs, Student's interval.
        second: the same of the other side.
        difference: of ``first - second``, Student's interval.
        p_value: two-sided, of sign flips.
        exact: all sign patterns were counted.
        p_t: two-sided, of the paired t test; None of one pair, or where all differences are equal.
        effect: None of fewer than 3 pairs, or where all differences are equal.
        seeds_needed: to see this difference with power .8; None of one pair, or of no difference.
    """

    first: Interval
    second: Interval
    difference: Interval
    p_value: float
    exact: bool
    p_t: float | None
    effect: Effect | None
    seeds_needed: int | None


def compare_paired(
    first: Sequence[float] | Float, second: Sequence[float] | Float, *, seed: int = 0
) -> PairedComparison:
    """Compare ``n`` values with ``n`` others, pair by pair.

    Args:
        first: a metric of each seed.
        second: of the same seeds, in the same order.
        seed: of the sign flips, where there are too many to count.

    Raises:
        DataError: different lengths, no values, or one that is not finite.
    """
    left, right = finite_pairs(first, second)
    difference = paired_interval(left, right)
    test = permutation_test(left - right, seed=seed)
    return PairedComparison(
        first=t_interval(left),
        second=t_interval(right),
        difference=difference,
        p_value=test.p_value,
        exact=test.exact,
        p_t=_paired_t(left, right),
        effect=effect_size(left, right),
        seeds_needed=seeds_for(difference, difference.mean),
    )


def seeds_for(paired_difference: Interval, size: float) -> int | None:
    """Return how many seeds show a difference of ``size`` if pairs spread as these do; None where nobody can say."""
    if paired_difference.std is None or size == 0:
        return None
    return seeds_needed(paired_difference.std, size)


def _paired_t(left: Float64, right: Float64) -> float | None:
    if len(left) == 1 or has_no_spread(left, right):
        return None
    return float(stats.ttest_rel(left, right).pvalue)
