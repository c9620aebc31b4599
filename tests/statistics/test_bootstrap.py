import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfora_ray.errors import DataError
from sfora_ray.statistics import bootstrap_interval, t_interval


def bca(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], draws: int) -> tuple[float, float]:
    """Efron's formula written out, with draws of its own."""
    rng = np.random.default_rng(1)
    means = values[rng.integers(0, len(values), (draws, len(values)))].mean(1)
    z0 = stats.norm.ppf((np.mean(means < values.mean()) + np.mean(means <= values.mean())) / 2)
    left_out = (values.sum() - values) / (len(values) - 1)
    spread = left_out.mean() - left_out
    a = (spread**3).sum() / (6 * (spread**2).sum() ** 1.5)
    z = np.array([stats.norm.ppf(0.025), stats.norm.ppf(0.975)])
    low, high = np.quantile(means, stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z))))
    return float(low), float(high)


def test_is_efrons() -> None:
    values = np.random.default_rng(0).exponential(size=25)
    found = bootstrap_interval(values, 3, draws=40_000)
    assert found.ci95 == pytest.approx(bca(values, 40_000), abs=0.02)
    plain = t_interval(values)
    assert (found.mean, found.std, found.n) == (plain.mean, plain.std, 25)
    # Skewed values: the upper end lies further from the mean, which Student's interval cannot show.
    assert found.ci95 is not None
    assert found.ci95[1] - found.mean > 1.2 * (found.mean - found.ci95[0])


def test_same_seed_same_ends() -> None:
    values = [0.7, 0.72, 0.69, 0.75, 0.71]
    assert bootstrap_interval(values, 1) == bootstrap_interval(values, 1)
    assert bootstrap_interval(values, 1) != bootstrap_interval(values, 2)


def test_one_value_and_equal_values() -> None:
    assert bootstrap_interval([0.7], 0).ci95 is None
    assert bootstrap_interval([0.5] * 4, 0).ci95 == (0.5, 0.5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=7), st.integers(0, 3))
def test_ends_lie_around_the_mean_also_of_few_and_equal_values(values: list[int], seed: int) -> None:
    found = bootstrap_interval(values, seed, draws=200)
    assert found.ci95 is not None
    assert min(values) <= found.ci95[0] <= found.mean <= found.ci95[1] <= max(values)


def test_refused() -> None:
    with pytest.raises(DataError, match="finite numbers"):
        bootstrap_interval([], 0)
