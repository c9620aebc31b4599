import numpy as np
import pytest
from scipy import stats

from sfora_ray.errors import DataError
from sfora_ray.statistics import compare_paired, compare_unpaired, paired_interval, seeds_for, t_interval


def test_all_of_it_of_five_seeds() -> None:
    first, second = [0.71, 0.73, 0.70, 0.74, 0.72], [0.70, 0.71, 0.69, 0.71, 0.70]
    found = compare_paired(first, second)
    assert found.first == t_interval(first)
    assert found.second == t_interval(second)
    assert found.difference == paired_interval(first, second)
    assert (found.p_value, found.exact) == (2 / 32, True)
    assert found.p_t == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert found.effect is not None
    # The differences have mean .018 and standard deviation .00837: an effect of 2.15.
    assert found.seeds_needed == 4


def test_one_pair_says_next_to_nothing() -> None:
    found = compare_paired([0.8], [0.7])
    assert found.difference.mean == pytest.approx(0.1)
    assert (found.difference.ci95, found.p_value, found.p_t) == (None, 1, None)
    assert (found.effect, found.seeds_needed) == (None, None)


def test_no_difference() -> None:
    found = compare_paired([0.8, 0.7, 0.6], [0.8, 0.7, 0.6])
    assert (found.difference.ci95, found.p_value) == ((0, 0), 1)
    assert (found.p_t, found.effect, found.seeds_needed) == (None, None, None)


def test_pairing_finds_what_the_spread_of_seeds_hides() -> None:
    seeds = np.random.default_rng(0).normal(0.7, 0.05, 8)
    first, second = seeds + np.array([0.01, 0.012, 0.009, 0.011, 0.01, 0.008, 0.012, 0.01]), seeds
    assert compare_paired(first, second).p_value == 2 / 256
    assert compare_unpaired(first, second).p_value > 0.5


def test_seeds_for_a_size_of_ones_own() -> None:
    difference = compare_paired([0.71, 0.73, 0.70], [0.70, 0.71, 0.70]).difference
    assert difference.std == pytest.approx(0.01)
    assert seeds_for(difference, 0.01) == 10
    assert seeds_for(difference, 0) is None


def test_welch_is_scipys() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.7, 0.01, 5), rng.normal(0.68, 0.03, 8)
    found = compare_unpaired(first, second)
    expected = stats.ttest_ind(first, second, equal_var=False)
    bounds = expected.confidence_interval(0.95)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.difference.ci95 == pytest.approx((bounds.low, bounds.high))
    assert (found.difference.n, found.difference.std) == (13, None)
    assert (found.first, found.second) == (t_interval(first), t_interval(second))


def test_welch_without_any_spread() -> None:
    assert compare_unpaired([0.5, 0.5], [0.5, 0.5]).p_value == 1
    found = compare_unpaired([0.5, 0.5], [0.25, 0.25])
    assert (found.p_value, found.difference.ci95) == (0, (0.25, 0.25))


def test_refused() -> None:
    with pytest.raises(DataError, match="two seeds"):
        compare_unpaired([0.5], [0.4, 0.3])
    with pytest.raises(DataError, match="same seeds"):
        compare_paired([0.5], [0.4, 0.3])
