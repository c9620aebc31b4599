from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfora_ray.errors import DataError
from sfora_ray.retrieval import score, score_against
from tests.retrieval.reference import load
from tests.retrieval.slow import slow_metrics, unit

CASES: dict[str, tuple[tuple[float, ...], list[int], dict[str, float]]] = {
    "all embeddings equal": (
        (30, 30, 30, 30, 30, 30),
        [0, 1, 2, 0, 1, 2],
        {
            "recall_at_1": 1 / 6,
            "recall_at_2": 2 / 6,
            "recall_at_4": 5 / 6,
            "recall_at_8": 1,
            "map_at_r": 1 / 6,
            "mean_average_precision": 0.4361111,
        },
    ),
    "all equal, classes side by side": (
        (0, 0, 0, 0, 0, 0),
        [0, 0, 1, 1, 2, 2],
        {"recall_at_1": 1 / 3, "recall_at_2": 1 / 3, "recall_at_4": 2 / 3, "recall_at_8": 1},
    ),
    "duplicates": (
        (0, 0, 10, 25, 90, 90, 180),
        [0, 1, 0, 1, 2, 2, 3],
        {
            "recall_at_1": 0.5,
            "recall_at_2": 2 / 3,
            "recall_at_4": 1,
            "map_at_r": 0.5,
            "mean_average_precision": 0.6944444,
        },
    ),
    "fewer rows than K": (
        (0, 20, 100, 150, 262),
        [0, 1, 0, 1, 0],
        {
            "recall_at_1": 0.2,
            "recall_at_2": 0.4,
            "recall_at_4": 1,
            "recall_at_8": 1,
            "map_at_r": 0.15,
            "mean_average_precision": 0.4666667,
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_hand_examples(case: str) -> None:
    degrees, labels, expected = CASES[case]
    found = score(unit(*degrees), np.array(labels), nmi=False).metrics()
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-6)


def test_singletons_are_left_out_and_counted_or_missed() -> None:
    degrees, labels, _ = CASES["duplicates"]
    skipped = score(unit(*degrees), np.array(labels), nmi=False)
    missed = score(unit(*degrees), np.array(labels), nmi=False, singletons="miss")
    assert (skipped.num_queries, skipped.num_singletons) == (6, 1)
    assert (missed.num_queries, missed.num_singletons) == (7, 1)
    assert missed.recall_at_1 == pytest.approx(3 / 7)
    assert missed.recall_at_8 == pytest.approx(6 / 7)
    assert missed.mean_average_precision == pytest.approx(skipped.mean_average_precision * 6 / 7)
    assert missed.per_query.rows.tolist() == list(range(7))


def test_queries_against_a_gallery() -> None:
    found = score_against(unit(5, 95, 10), np.array([0, 1, 2]), unit(0, 90, 100), np.array([0, 2, 2]))
    expected = {
        "recall_at_1": 0.5,
        "recall_at_2": 1,
        "map_at_r": 0.625,
        "mean_average_precision": 0.7916667,
        "r_precision": 0.75,
    }
    assert (found.num_queries, found.num_singletons) == (2, 1)
    assert {key: found.metrics()[key] for key in expected} == pytest.approx(expected, abs=1e-6)


def test_nobody_has_a_partner() -> None:
    with pytest.raises(DataError, match="no query has a partner"):
        score_against(unit(5, 95, 10), np.array([0, 1, 2]), unit(0, 90, 100), np.array([8, 9, 9]))
    with pytest.raises(DataError, match="no query has a partner"):
        score(unit(0, 90), np.array([0, 1]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused_by_number(bad: float) -> None:
    rows = unit(0, 20, 100, 150, 262)
    rows[3, 1] = bad
    with pytest.raises(DataError, match="first row 3"):
        score(rows, np.array([0, 1, 0, 1, 0]))


def test_a_zero_row_has_cosine_zero() -> None:
    rows = unit(0, 20, 100, 150, 262)
    rows[2] = 0
    labels = np.array([0, 1, 0, 1, 0])
    found = score(rows, labels, nmi=False).metrics()
    assert found == pytest.approx(slow_metrics(rows, labels, rows, labels, within=True))


def test_rows_of_other_lengths_are_normalised() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 6)).astype(np.float32)
    labels = rng.integers(0, 6, 40)
    shorter = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert score(rows, labels, nmi=False).metrics() == score(shorter, labels, nmi=False).metrics()


def test_labels_and_widths_must_match() -> None:
    with pytest.raises(DataError, match="3 rows need as many labels"):
        score(unit(0, 1, 2), np.array([0, 0]))
    with pytest.raises(DataError, match="equally wide"):
        score_against(unit(0, 1), np.array([0, 0]), np.eye(3, dtype=np.float32), np.array([0, 0, 1]))


@pytest.mark.parametrize("case", ["c0", "c1_balanced"])
def test_published_programs(case: str) -> None:
    arrays = load("metrics")
    rows, labels = arrays[f"{case}/in/X"], arrays[f"{case}/in/labels"]
    found = score(rows, labels, nmi=False).metrics()
    expected = {f"recall_at_{k}": arrays[f"{case}/sfora/recall_at_{k}"].item() for k in (1, 2, 4, 8)} | {
        "map_at_r": arrays[f"{case}/pml/mean_average_precision_at_r"].item(),
        "mean_average_precision": arrays[f"{case}/pml/mean_average_precision"].item(),
        "r_precision": arrays[f"{case}/pml/r_precision"].item(),
    }
    assert found == pytest.approx(expected, rel=1e-9)
    official = score(rows, labels, nmi=False, singletons="miss")
    for k in (1, 2, 4, 8):
        reference = arrays[f"{case}/official_evaluate_cos/recall_at_{k}"]
        assert official.metrics()[f"recall_at_{k}"] == pytest.approx(reference, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equals_the_slow_loop_with_many_ties(data: Any) -> None:
    num = data.draw(st.integers(2, 24))
    degrees = data.draw(st.lists(st.sampled_from([0, 0, 7, 20, 45, 91, 200]), min_size=num, max_size=num))
    labels = np.array(data.draw(st.lists(st.integers(0, 4), min_size=num, max_size=num)))
    labels[-1] = labels[0]
    rows = unit(*degrees)
    expected = slow_metrics(rows, labels, rows, labels, within=True)
    assert score(rows, labels, nmi=False).metrics() == pytest.approx(expected)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_metrics_do_not_depend_on_the_names_of_classes_or_a_rotation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 8))
    labels = rng.integers(0, 5, 30)
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    first = score(rows, labels, nmi=False).metrics()
    assert first == score(rows @ rotation, 10**9 - 7 * labels, nmi=False).metrics()


def test_mean_average_precision_is_over_the_whole_ranking() -> None:
    rng = np.random.default_rng(11)
    rows, labels = rng.normal(size=(60, 4)).astype(np.float32), rng.integers(0, 6, 60)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    similarities = rows.astype(np.float64) @ rows.T.astype(np.float64)
    np.fill_diagonal(similarities, -2)
    relevance = labels[np.argsort(-similarities, axis=1, kind="stable")[:, :-1]] == labels[:, None]
    precision = relevance.cumsum(1) / np.arange(1, 60)
    expected = ((precision * relevance).sum(1) / relevance.sum(1)).mean()
    assert score(rows, labels, nmi=False).mean_average_precision == pytest.approx(expected, rel=1e-9)
