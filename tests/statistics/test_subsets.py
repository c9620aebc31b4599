import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfora_ray.errors import DataError
from sfora_ray.statistics import Subset, choose_subsets, curve_subsets, subset_interval, t_interval


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 30), st.integers(0, 5))
def test_different_ascending_and_as_many_as_there_are(members: int, size: int, most: int, seed: int) -> None:
    size = min(size, members)
    found = choose_subsets(members, size, most, seed)
    assert len(found) == len(set(found)) == min(most, math.comb(members, size))
    assert all(len(s) == size and list(s) == sorted(set(s)) and s[-1] < members for s in found)
    assert found == choose_subsets(members, size, most, seed)


@pytest.mark.parametrize(("members", "size", "most"), [(9, 3, 12), (9, 4, 20), (20, 1, 7), (12, 6, 30)])
def test_a_sample_uses_members_evenly(members: int, size: int, most: int) -> None:
    used = np.bincount(np.concatenate(choose_subsets(members, size, most, 1)), minlength=members)
    assert used.max() - used.min() <= 1
    assert choose_subsets(members, size, most, 1) != choose_subsets(members, size, most, 2)


def test_every_size() -> None:
    assert set(curve_subsets(4, 100, 0)) == {s for size in range(1, 5) for s in itertools.combinations(range(4), size)}


@pytest.mark.parametrize(("size", "most"), [(0, 3), (5, 3), (2, 0)])
def test_bad_requests(size: int, most: int) -> None:
    with pytest.raises(DataError, match=r"size in 1\.\.4"):
        choose_subsets(4, size, most, 0)


def test_single_members_have_students_interval() -> None:
    values = [0.5, 0.55, 0.52, 0.61]
    found = subset_interval({(m,): value for m, value in enumerate(values)}, 4)
    expected = t_interval(values)
    assert (found.mean, found.std) == pytest.approx((expected.mean, expected.std))
    assert found.ci95 == pytest.approx(expected.ci95)


def test_overlapping_subsets_are_not_taken_for_independent_values() -> None:
    effects = np.random.default_rng(0).normal(size=6)
    # Linear in its members: the mean over all pairs is the mean over members, exactly as sure.
    pairs: dict[Subset, float] = {
        pair: float(effects[list(pair)].mean()) for pair in itertools.combinations(range(6), 2)
    }
    assert subset_interval(pairs, 6).ci95 == pytest.approx(t_interval(effects).ci95)
    assert subset_interval(pairs, 6).n == 15


def test_the_whole_pack_has_no_interval() -> None:
    assert subset_interval({(0, 1, 2): 0.7}, 3).record() == {"mean": 0.7, "std": None, "n": 1, "ci95": None}


def test_sizes_are_not_mixed() -> None:
    with pytest.raises(DataError, match="one size"):
        subset_interval({(0,): 0.1, (0, 1): 0.2}, 3)
