from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfora_ray.errors import DataError
from sfora_ray.retrieval import nearest
from tests.retrieval.slow import unit


def test_a_gallery_of_five_has_five_neighbours_each_once() -> None:
    found = nearest(unit(5, 250), unit(0, 20, 100, 150, 262), k=10)
    assert found.indices.tolist() == [[0, 1, 2, 4, 3], [4, 3, 0, 1, 2]]
    assert np.rad2deg(np.arccos(found.similarities[0])) == pytest.approx([5, 15, 95, 103, 145], abs=1e-3)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equals_a_full_sort(data: Any) -> None:
    degrees = data.draw(st.lists(st.sampled_from([0, 0, 7, 20, 45, 91, 200]), min_size=2, max_size=20))
    k = data.draw(st.integers(1, 25))
    rows = unit(*degrees)
    found = nearest(rows, k=k)
    for query in range(len(rows)):
        others = [row for row in range(len(rows)) if row != query]
        order = sorted(others, key=lambda row: (-float(rows[query] @ rows[row].astype(np.float64)), row))
        assert found.indices[query].tolist() == order[:k]


def test_chosen_rows_only() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 4))
    whole, some = nearest(rows, k=3), nearest(rows, k=3, rows=np.array([5, 17]))
    assert np.array_equal(whole.indices[[5, 17]], some.indices)


def test_a_row_alone_has_no_neighbours() -> None:
    assert nearest(unit(10), k=3).indices.shape == (1, 0)


def test_bad_requests() -> None:
    with pytest.raises(DataError, match="k must be at least 1, got 0"):
        nearest(unit(0, 10), k=0)
    with pytest.raises(DataError, match="equally wide"):
        nearest(unit(0, 10), np.eye(3), k=1)
