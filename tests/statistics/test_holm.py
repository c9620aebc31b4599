import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfora_ray.errors import DataError
from sfora_ray.statistics import holm


def by_closed_testing(p_values: list[float]) -> list[float]:
    """Holm's test is the closure of Bonferroni's: the worst Bonferroni p-value of any family that holds the test."""
    places = range(len(p_values))
    families = [f for size in range(1, len(p_values) + 1) for f in itertools.combinations(places, size)]
    bonferroni = {family: min(1.0, len(family) * min(p_values[i] for i in family)) for family in families}
    return [max(value for family, value in bonferroni.items() if place in family) for place in places]


def test_by_hand() -> None:
    # Sorted .01 .02 .03 .04 times 4 3 2 1: .04 .06 .06 .04, and never below the one before.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_as_closed_testing_defines_it(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(by_closed_testing(p_values))


def test_edges() -> None:
    assert holm([]) == ()
    assert holm([0.3]) == (0.3,)
    assert holm([1.0, 1.0]) == (1.0, 1.0)
    for wrong in ([0.1, 1.2], [-0.1], [float("nan")]):
        with pytest.raises(DataError, match=r"within 0\.\.1"):
            holm(wrong)
