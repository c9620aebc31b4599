from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfora_ray.arrays import l2_normalize
from sfora_ray.errors import DataError
from sfora_ray.retrieval import score, similarity
from sfora_ray.retrieval.coarse import _falling
from tests.retrieval.slow import slow_metrics, unit


def coarse(found: dict[str, float]) -> dict[str, float]:
    return {key: value for key, value in found.items() if key.startswith("coarse")}


def test_by_hand() -> None:
    # Seen from 0 degrees: the rows at 10, 30 and 90, of the coarse classes 1, 0 and 0.
    found = score(unit(0, 10, 30, 90), np.array([0, 1, 0, 1]), coarse=np.array([0, 1, 0, 0]), nmi=False)
    assert found.coarse is not None
    # Three queries: 0 (miss, then 1/2 at rank 2), 30 (miss, then 1/2), 90 (hit, and 1/2 + 1/3 - only rank 2 counts).
    assert found.coarse.recall_at_1 == pytest.approx(1 / 3)
    assert found.coarse.map_at_r == pytest.approx((1 / 4 + 1 / 4 + 1 / 2) / 3)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equals_the_slow_loop_on_the_coarse_labels_with_many_ties(data: Any) -> None:
    num = data.draw(st.integers(2, 24))
    degrees = data.draw(st.lists(st.sampled_from([0, 0, 7, 20, 45, 91, 200]), min_size=num, max_size=num))
    labels = np.array(data.draw(st.lists(st.integers(0, 5), min_size=num, max_size=num)))
    labels[-1] = labels[0]
    kinds = labels // 2
    expected = slow_metrics(unit(*degrees), kinds, unit(*degrees), kinds, within=True)
    found = score(unit(*degrees), labels, coarse=kinds, nmi=False).metrics()
    assert found["coarse_recall_at_1"] == pytest.approx(expected["recall_at_1"])
    assert found["coarse_map_at_r"] == pytest.approx(expected["map_at_r"])


@pytest.mark.parametrize("singletons", ["skip", "miss"])
def test_equals_scoring_the_coarse_labels_block_by_block(singletons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows = np.asarray(l2_normalize(rng.normal(size=(150, 5)).astype(np.float32)))
    labels = rng.integers(0, 40, 150)
    kinds = np.where(labels < 30, labels % 4, labels)
    kinds[0] = 99
    expected = score(rows, kinds, nmi=False, singletons=singletons).metrics()
    monkeypatch.setattr(similarity, "CPU_BLOCK", 150 * 16)
    found = score(rows, labels, coarse=kinds, nmi=False, singletons=singletons).metrics()
    assert found["coarse_recall_at_1"] == pytest.approx(expected["recall_at_1"], abs=1e-12)
    assert found["coarse_map_at_r"] == pytest.approx(expected["map_at_r"], abs=1e-12)


def test_coarse_labels_change_nothing_else_and_are_absent_without() -> None:
    rows, labels = unit(0, 10, 30, 90, 95), np.array([0, 1, 0, 1, 1])
    plain, both = (score(rows, labels, coarse=kinds, nmi=False).metrics() for kinds in (None, labels % 2))
    assert coarse(plain) == {}
    assert {key: both[key] for key in plain} == plain
    # Coarse classes that are the classes: the coarse metrics are the others.
    assert list(coarse(both).values()) == pytest.approx([plain["recall_at_1"], plain["map_at_r"]])


def test_every_row_needs_a_coarse_label() -> None:
    with pytest.raises(DataError, match="coarse classes: 3 rows need as many labels"):
        score(unit(0, 1, 2), np.array([0, 0, 1]), coarse=np.array([0, 0]), nmi=False)


def test_integers_fall_as_floats_rise_and_zeros_are_equal() -> None:
    values = torch.tensor(
        [-torch.inf, -1.0, -0.5, -1e-40, -0.0, 0.0, 1e-40, 0.5, float(np.nextafter(np.float32(0.5), 1)), 1.0]
    )
    found = _falling(values)
    steps = found.diff()
    assert steps[4] == 0
    assert bool((steps[[0, 1, 2, 3, 5, 6, 7, 8]] < 0).all())
