import numpy as np
import pytest
from scipy import stats

from sfora_ray.errors import DataError
from sfora_ray.statistics import cluster_bootstrap, paired_interval, t_interval


def test_students_interval_by_hand() -> None:
    found = t_interval([0.70, 0.72, 0.74])
    assert found.mean == pytest.approx(0.72)
    assert found.std == pytest.approx(0.02)
    # The 97.5 % point of Student's t with two degrees of freedom is 4.30265.
    reach = 4.30265 * 0.02 / 3**0.5
    assert found.ci95 == pytest.approx((0.72 - reach, 0.72 + reach), abs=1e-6)
    record = found.record()
    assert (record["n"], record["ci95"]) == (3, list(found.ci95 or ()))


def test_one_value_has_no_spread() -> None:
    assert t_interval([0.7]).record() == {"mean": 0.7, "std": None, "n": 1, "ci95": None}


@pytest.mark.parametrize("values", [[], [0.1, float("nan")], [[0.1]]])
def test_values_that_are_none(values: list[float]) -> None:
    with pytest.raises(DataError, match="finite numbers"):
        t_interval(values)


def test_pairs() -> None:
    rng = np.random.default_rng(0)
    seeds = rng.normal(size=6)
    first, second = seeds + 0.1 + 0.01 * rng.normal(size=6), seeds
    found = paired_interval(first, second)
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert found.ci95 == pytest.approx((expected.low, expected.high))
    with pytest.raises(DataError, match="same seeds"):
        paired_interval(first, second[:3])


def test_bootstrap_equals_drawing_the_queries_of_drawn_classes() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(12), rng.integers(2, 9, 12))
    values = (rng.random(len(clusters)) < 0.2 + 0.6 * rng.random(12)[clusters]).astype(float)
    means = []
    for _ in range(4000):
        drawn = rng.integers(0, 12, 12)
        means.append(np.concatenate([values[clusters == cluster] for cluster in drawn]).mean())
    expected = np.quantile(means, [0.025, 0.975])
    found = cluster_bootstrap(values, clusters * 7 - 3, 5)
    assert found == pytest.approx(tuple(expected), abs=0.02)
    assert found == cluster_bootstrap(values, clusters * 7 - 3, 5)


def test_bootstrap_is_wider_when_queries_of_a_class_agree() -> None:
    clusters = np.repeat(np.arange(20), 30)
    together = np.repeat(np.arange(20) % 2, 30).astype(float)
    apart = np.tile([0.0, 1.0], 300)
    wide, narrow = cluster_bootstrap(together, clusters, 0), cluster_bootstrap(apart, clusters, 0)
    assert wide is not None
    assert wide[1] - wide[0] > 0.3
    assert narrow == pytest.approx((0.5, 0.5))


def test_bootstrap_edges() -> None:
    assert cluster_bootstrap(np.ones(3), np.zeros(3, np.int64), 0) is None
    with pytest.raises(DataError, match="each value needs its class"):
        cluster_bootstrap(np.ones(3), np.zeros(2, np.int64), 0)
