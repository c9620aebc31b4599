import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from sfora_ray.errors import DataError
from sfora_ray.statistics import paired_power, seeds_needed


def by_counting_up(std: float, difference: float, power: float, alpha: float) -> int:
    """The first n that will do, with a noncentral t that is a mean over chi-square quantiles."""
    n = 2
    while True:
        critical = special.stdtrit(n - 1, 1 - alpha / 2)
        shift = abs(difference) / std * math.sqrt(n)
        spread = np.sqrt(stats.chi2.ppf((np.arange(4000) + 0.5) / 4000, n - 1) / (n - 1))
        reached = np.mean(stats.norm.sf(critical * spread - shift) + stats.norm.cdf(-critical * spread - shift))
        if reached >= power:
            return n
        n += 1


@pytest.mark.parametrize("ratio", [0.2, 0.4, 0.7, 1.0, 1.3, 2.0, 2.6])
@pytest.mark.parametrize(("power", "alpha"), [(0.8, 0.05), (0.95, 0.01), (0.5, 0.05)])
def test_the_first_that_will_do(ratio: float, power: float, alpha: float) -> None:
    assert seeds_needed(ratio, -1, power=power, alpha=alpha) == by_counting_up(ratio, 1, power, alpha)


def test_known_numbers() -> None:
    # Cohen's table for a paired effect of .5 with power .8: 34 pairs; of 1: 10.
    assert seeds_needed(1, 0.5) == 34
    assert seeds_needed(0.004, 0.004) == 10


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1e4), st.floats(1e-4, 1), st.floats(1.01, 3))
def test_more_spread_or_less_difference_needs_no_fewer(std: float, difference: float, factor: float) -> None:
    base = seeds_needed(std, difference)
    assert seeds_needed(std * factor, difference) >= base
    assert seeds_needed(std, difference / factor) >= base
    assert seeds_needed(std, difference, power=0.9) >= base >= 2


def test_the_two_ways_meet_where_one_ends() -> None:
    # Near 20,000 pairs the search and the formula give the same number, so that there is no step between them.
    found = [seeds_needed(std, 1) for std in np.linspace(50.45, 50.55, 21)]
    assert found[0] < 20_000 < found[-1]
    assert set(np.diff(found)) <= {3, 4, 5}


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 50, 1000])
def test_power_is_a_number_everywhere_and_grows(freedom: int) -> None:
    found = [paired_power(1, effect, freedom + 1) for effect in np.linspace(0, 60, 500) / math.sqrt(freedom + 1)]
    assert np.isfinite(found).all()
    assert np.diff(found).min() > -1e-6
    assert found[0] == pytest.approx(0.05)


def test_power_is_what_simulation_shows() -> None:
    rng = np.random.default_rng(0)
    seen = np.mean(stats.ttest_1samp(rng.normal(1.2, 1, (20_000, 7)), 0, axis=1).pvalue <= 0.05)
    assert paired_power(1, 1.2, 7) == pytest.approx(seen, abs=0.01)
    assert paired_power(1, 0, 7) == pytest.approx(0.05)
    assert paired_power(1e-6, 1, 3) == 1


def test_no_spread_needs_two() -> None:
    assert seeds_needed(0, 0.01) == 2


@pytest.mark.parametrize(
    ("std", "difference", "power"), [(1, 0, 0.8), (-1, 1, 0.8), (math.nan, 1, 0.8), (1, math.inf, 0.8), (1, 1, 1.0)]
)
def test_refused(std: float, difference: float, power: float) -> None:
    with pytest.raises(DataError, match="seeds needed"):
        seeds_needed(std, difference, power=power)
