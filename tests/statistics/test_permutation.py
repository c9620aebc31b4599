import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfora_ray.errors import DataError
from sfora_ray.statistics import clustered_permutation_test, permutation_test, smallest_p_value


def by_hand(differences: list[int]) -> float:
    """Count in whole numbers, where equal sums are equal."""
    seen = abs(sum(differences))
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    return sum(abs(sum(s * d for s, d in zip(p, differences, strict=True))) >= seen for p in patterns) / len(patterns)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=9), st.sampled_from([1e-9, 0.001, 0.1, 1.0, 1e12]))
def test_the_share_of_all_sign_patterns_whatever_the_scale(differences: list[int], scale: float) -> None:
    # Tenths and thousandths are no binary fractions: their sums are equal only up to rounding.
    found = permutation_test([scale * d for d in differences])
    assert found.p_value == pytest.approx(by_hand(differences), abs=1e-12)
    assert (found.exact, found.draws) == (True, 2 ** len(differences))


@pytest.mark.parametrize("n", [2, 5, 10, 16])
def test_as_scipy_enumerates_it(n: int) -> None:
    rng = np.random.default_rng(n)
    first, second = rng.normal(0.4, 1, n), rng.normal(0, 1, n)
    expected = stats.permutation_test(
        (first, second), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=2**n
    )
    found = permutation_test(first - second)
    assert found.exact
    assert found.p_value == pytest.approx(float(expected.pvalue), rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 16])
def test_the_least_p_value(n: int) -> None:
    assert permutation_test(np.ones(n)).p_value == smallest_p_value(n) == (1.0 if n == 1 else 2 / 2**n)


@pytest.mark.parametrize("n", [1, 4, 16, 40])
def test_no_difference_at_all_is_certain(n: int) -> None:
    assert permutation_test(np.zeros(n)).p_value == 1


def test_zero_pairs_change_nothing() -> None:
    assert permutation_test([0.3, 0.1, 0.2, 0, 0]).p_value == permutation_test([0.3, 0.1, 0.2]).p_value


def test_drawn_patterns_come_near_counted_ones_and_are_never_zero() -> None:
    differences = np.random.default_rng(3).normal(0.35, 1, 17)
    found = permutation_test(differences, seed=5, draws=20_000)
    signs = np.array(list(itertools.product((1, -1), repeat=17)), np.int8)
    exact = float(np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12))
    assert not found.exact
    assert found.draws == 20_000
    assert found.p_value == pytest.approx(exact, abs=0.012)
    assert found == permutation_test(differences, seed=5, draws=20_000)
    assert found != permutation_test(differences, seed=6, draws=20_000)
    assert permutation_test(np.ones(60), draws=99).p_value == 1 / 100


def test_false_alarms_are_as_rare_as_promised() -> None:
    # Exact test of 8 pairs: the p-value is at most .05 in at most 5 of 100 draws, up to the noise of 2,000.
    rng = np.random.default_rng(0)
    p_values = np.array([permutation_test(rng.standard_t(3, 8)).p_value for _ in range(2000)])
    assert 0.03 < np.mean(p_values <= 0.05) < 0.06
    assert np.mean(p_values <= 0.5) == pytest.approx(0.5, abs=0.035)


def test_whole_classes_flip() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat([7, -2, 40, 3, 11], [4, 1, 9, 2, 5])
    differences = rng.normal(0.3, 1, len(clusters))
    seen, hits = abs(differences.mean()), 0
    for signs in itertools.product((1, -1), repeat=5):
        sign_of = dict(zip([7, -2, 40, 3, 11], signs, strict=True))
        flipped = np.array([sign_of[c] * d for c, d in zip(clusters, differences, strict=True)])
        hits += abs(flipped.mean()) >= seen - 1e-12
    found = clustered_permutation_test(differences, clusters, 0)
    assert (found.p_value, found.exact, found.draws) == (hits / 32, True, 32)


def test_many_queries_of_few_classes_prove_little() -> None:
    # 600 queries that agree within each of two classes are two observations.
    assert clustered_permutation_test(np.ones(600), np.repeat([0, 1], 300), 0).p_value == 0.5
    assert clustered_permutation_test(np.ones(600), np.zeros(600, np.int64), 0).p_value == 1


def test_false_alarms_where_queries_of_a_class_rise_and_fall_together() -> None:
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(20), 10)
    p_values = [
        clustered_permutation_test(
            rng.normal(size=20)[clusters] + rng.normal(size=200), clusters, number, draws=999
        ).p_value
        for number in range(400)
    ]
    assert 0.02 < np.mean(np.array(p_values) <= 0.05) < 0.085


def test_refused() -> None:
    with pytest.raises(DataError, match="finite numbers"):
        permutation_test([])
    with pytest.raises(DataError, match="finite numbers"):
        permutation_test([0.1, float("nan")])
    with pytest.raises(DataError, match="each difference needs its class"):
        clustered_permutation_test(np.ones(3), np.zeros(2, np.int64), 0)
