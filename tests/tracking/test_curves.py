import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.exceptions import MlflowException
from mlflow.utils.validation import _validate_metric_name

from sfora_ray.errors import TrackerError
from sfora_ray.tracking.base import MetricPoint
from sfora_ray.tracking.curves import Last, new_points
from sfora_ray.tracking.keys import metric_key
from sfora_ray.tracking.limits import batches, shortened


def point(key: str, value: float, step: int) -> MetricPoint:
    return MetricPoint(key, value, step, 1000 + step)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("R@1", "recall_at_1"),
        ("recall@8", "recall_at_8"),
        ("MAP@R", "map_at_r"),
        ("mAP", "mean_average_precision"),
        ("recall_at_1.ci95_lo", "recall_at_1.ci95_lo"),
        ("loss", "loss"),
        ("folds/gpa/recall_at_1", "folds/gpa/recall_at_1"),
        ("a//b/../c", "a/b/c"),
        ("/gpu 0:load", "gpu 0:load"),
        ("x=[1]", "x__1_"),
    ],
)
def test_metric_key(name: str, key: str) -> None:
    assert metric_key(name) == key


def test_mlflow_itself_refuses_the_name_that_we_map() -> None:
    with pytest.raises(MlflowException):
        _validate_metric_name("R@1")  # type: ignore[no-untyped-call]


@given(st.text(max_size=60))
def test_every_key_is_accepted_by_mlflow_and_maps_to_itself(name: str) -> None:
    try:
        key = metric_key(name)
    except TrackerError:
        return
    _validate_metric_name(key)  # type: ignore[no-untyped-call]
    assert metric_key(key) == key


@pytest.mark.parametrize("name", ["", "  ", "/", "..", "k" * 300])
def test_impossible_keys_are_refused(name: str) -> None:
    with pytest.raises(TrackerError, match=r"metric key: .*got .*Rename"):
        metric_key(name)


def test_only_points_beyond_the_last_step_are_new() -> None:
    told = [point("loss", 3.0, 3), point("loss", 1.0, 1), point("R@1", 0.5, 1), point("loss", 2.0, 2)]
    assert [(p.key, p.step, p.value) for p in new_points(told, {"loss": Last(1, 9.0)})] == [
        ("recall_at_1", 1, 0.5),
        ("loss", 2, 2.0),
        ("loss", 3, 3.0),
    ]


def test_values_that_are_no_numbers_are_counted_and_counted_once() -> None:
    told = [point("loss", v, s) for s, v in enumerate([1.0, math.nan, math.inf, 2.0])]
    first = new_points(told, {})
    assert [(p.key, p.step, p.value) for p in first] == [
        ("loss", 0, 1.0),
        ("nonfinite.loss", 1, 1.0),
        ("nonfinite.loss", 2, 2.0),
        ("loss", 3, 2.0),
    ]
    last = {p.key: Last(p.step, p.value) for p in first}
    assert new_points(told, last) == []
    assert new_points([point("loss", -math.inf, 9)], last) == [point("nonfinite.loss", 3.0, 9)]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 8), st.sampled_from([1.0, math.nan])), max_size=30))
def test_stored_steps_ascend_strictly_however_points_are_told(told: list[tuple[str, int, float]]) -> None:
    last: dict[str, Last] = {}
    stored: dict[str, list[int]] = {}
    for key, step, value in told:
        for fresh in new_points([point(key, value, step)], last):
            last[fresh.key] = Last(fresh.step, fresh.value)
            stored.setdefault(fresh.key, []).append(fresh.step)
    assert all(steps == sorted(set(steps)) for steps in stored.values())


@given(st.lists(st.integers(), max_size=40), st.integers(1, 9))
def test_batches_hold_everything_once_in_order(items: list[int], size: int) -> None:
    parts = list(batches(items, size))
    assert [item for part in parts for item in part] == items
    assert all(0 < len(part) <= size for part in parts)


def test_a_long_value_gives_way_to_its_digest() -> None:
    kept = shortened({"a": "x" * 6000, "b": "x" * 6001}, 6000)
    assert kept["a"] == "x" * 6000
    # sha256 of 6001 letters x
    assert len(kept["b.sha256"]) == 64
    assert kept["b.sha256"] != shortened({"b": "x" * 6002}, 6000)["b.sha256"]
    assert set(kept) == {"a", "b.sha256"}
