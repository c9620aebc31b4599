import math

import numpy as np
import pytest
from scipy import integrate, stats

from sfora_ray.errors import DataError
from sfora_ray.statistics import effect_size
from sfora_ray.statistics.effect import hedges_factor


def noncentral_t_below(value: float, freedom: int, noncentrality: float) -> float:
    """P(Z + nc <= value * sqrt(V / df)), integrated over V, without SciPy's own noncentral t."""

    def integrand(v: float) -> float:
        return float(stats.norm.cdf(value * math.sqrt(v / freedom) - noncentrality) * stats.chi2.pdf(v, freedom))

    return float(integrate.quad(integrand, 0, stats.chi2.isf(1e-14, freedom), limit=400)[0])


def test_by_hand() -> None:
    # Differences 1 2 3 4 5: mean 3, standard deviation sqrt(2.5); with four degrees of freedom the correction is
    # gamma(2) / (sqrt(2) gamma(1.5)) = 0.797885.
    found = effect_size([1, 3, 3, 9, 5], [0, 1, 0, 5, 0])
    assert found is not None
    assert found.n == 5
    assert found.d_z == pytest.approx(0.7978846 * 3 / math.sqrt(2.5), rel=1e-6)


def test_the_correction_is_that_of_hedges_and_takes_the_bias_away() -> None:
    for freedom in (4, 9, 30, 200):
        assert hedges_factor(freedom) == pytest.approx(1 - 3 / (4 * freedom - 1), abs=3e-3)
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.7, 1, (200_000, 6))
    corrected = hedges_factor(5) * drawn.mean(1) / drawn.std(1, ddof=1)
    assert corrected.mean() == pytest.approx(0.7, abs=0.005)
    assert hedges_factor(1) == 0


@pytest.mark.parametrize("mean", [0.0, 0.3, -2.0, 11.0, 60.0])
@pytest.mark.parametrize("n", [3, 5, 12])
def test_the_ends_are_where_the_value_seen_is_a_tail(mean: float, n: int) -> None:
    differences = mean + np.linspace(-1, 1, n)
    found = effect_size(differences, np.zeros(n))
    assert found is not None
    assert found.ci95 is not None
    statistic = float(differences.mean() / stats.sem(differences))
    low, high = (end * math.sqrt(n) for end in found.ci95)
    assert noncentral_t_below(statistic, n - 1, low) == pytest.approx(0.975, abs=1e-6)
    assert noncentral_t_below(statistic, n - 1, high) == pytest.approx(0.025, abs=1e-6)
    assert found.ci95[0] < found.d_z < found.ci95[1]


def test_the_sign_follows_the_order() -> None:
    first, second = [0.7, 0.72, 0.75, 0.7], [0.69, 0.72, 0.72, 0.68]
    there, back = effect_size(first, second), effect_size(second, first)
    assert there is not None
    assert back is not None
    assert there.ci95 is not None
    assert back.d_z == -there.d_z
    assert back.ci95 == (-there.ci95[1], -there.ci95[0])


@pytest.mark.parametrize(("effect", "n"), [(0.0, 3), (0.8, 5), (2.5, 8)])
def test_the_interval_holds_the_truth_95_times_in_100(effect: float, n: int) -> None:
    rng = np.random.default_rng(n)
    hits = 0
    for drawn in rng.normal(effect, 1, (600, n)):
        found = effect_size(drawn, np.zeros(n))
        assert found is not None
        assert found.ci95 is not None
        hits += found.ci95[0] <= effect <= found.ci95[1]
    assert hits / 600 == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(
    ("first", "second"),
    [([0.5], [0.4]), ([0.5, 0.6], [0.4, 0.45]), ([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]), ([0.1] * 4, [0.1] * 4)],
    ids=["one pair", "two pairs", "equal up to rounding", "no difference"],
)
def test_none_where_nothing_can_be_said(first: list[float], second: list[float]) -> None:
    assert effect_size(first, second) is None


def test_an_effect_too_large_for_an_interval_has_none() -> None:
    found = effect_size([1, 1, 1 + 1e-7], [0, 0, 0])
    assert found is not None
    assert found.ci95 is None


def test_refused() -> None:
    with pytest.raises(DataError, match="same seeds"):
        effect_size([1, 2, 3], [1, 2])
