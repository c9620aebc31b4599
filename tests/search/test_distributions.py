"""Quantiles against scipy's and by enumeration, ends, digits, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from sfora_ray.search import Choice, Continuous, Integer, LogUniform, OneMinusLogUniform, Uniform

SHARES = np.linspace(0, 1, 21)
CONTINUOUS: list[Continuous] = [
    Uniform(low=-1, high=3),
    LogUniform(low=0.02, high=50),
    OneMinusLogUniform(low=0.9, high=0.9999),
]


def test_uniform_has_the_quantiles_of_scipy() -> None:
    expected = stats.uniform(loc=-1, scale=4).ppf(SHARES)
    assert [CONTINUOUS[0].at(share) for share in SHARES] == pytest.approx(list(expected), rel=1e-5)


def test_log_uniform_has_the_quantiles_of_scipy() -> None:
    expected = stats.loguniform(0.02, 50).ppf(SHARES)
    assert [CONTINUOUS[1].at(share) for share in SHARES] == pytest.approx(list(expected), rel=1e-5)


def test_one_minus_x_is_log_uniform_and_x_grows() -> None:
    values = [CONTINUOUS[2].at(share) for share in SHARES]
    expected = stats.loguniform(1e-4, 0.1).ppf(1 - SHARES)
    assert [1 - value for value in values] == pytest.approx(list(expected), rel=1e-5)
    assert values == sorted(values)
    assert CONTINUOUS[2].at(1 / 3) == 0.99
    assert CONTINUOUS[2].at(2 / 3) == 0.999


@pytest.mark.parametrize("one", CONTINUOUS, ids=lambda one: one.distribution)
def test_ends_are_reached_and_never_passed(one: Continuous) -> None:
    assert (one.at(0), one.at(1)) == (one.low, one.high)
    assert (one.nearest(-9), one.nearest(99)) == (one.low, one.high)
    assert one.probes() == (("low", one.low), ("high", one.high))
    assert one.all_values() is None


@given(st.sampled_from(CONTINUOUS), st.floats(0, 1))
def test_a_value_is_within_the_ends_and_has_few_digits(one: Continuous, share: float) -> None:
    value = one.at(share)
    assert one.low <= value <= one.high
    short = 1 - value if isinstance(one, OneMinusLogUniform) else value
    assert short == pytest.approx(float(f"{short:.6g}"), rel=1e-9)
    assert len(repr(value).lstrip("-0.")) <= 12
    assert one.nearest(value) == value


@pytest.mark.parametrize("one", CONTINUOUS, ids=lambda one: one.distribution)
def test_a_grid_is_equally_spaced_quantiles(one: Continuous) -> None:
    assert one.points(5) == tuple(one.at(share) for share in (0, 0.25, 0.5, 0.75, 1))
    assert one.points(1) == (one.at(0.5),)


def test_perturbing_multiplies_what_is_logarithmic_within_the_ends() -> None:
    assert LogUniform(low=0.1, high=10).perturbed(2, 1.2) == pytest.approx(2.4)
    assert LogUniform(low=0.1, high=2.2).perturbed(2, 1.2) == 2.2
    assert OneMinusLogUniform(low=0.9, high=0.9999).perturbed(0.99, 1.2) == pytest.approx(0.988)
    assert OneMinusLogUniform(low=0.9, high=0.9999).perturbed(0.99985, 0.5) == 0.9999


@pytest.mark.parametrize(("low", "high", "step"), [(2, 8, 1), (2, 8, 4), (-3, 9, 5), (0, 1, 3)])
def test_every_step_of_an_integer_is_as_likely(low: int, high: int, step: int) -> None:
    one = Integer(low=low, high=high, step=step)
    values = list(range(low, high + 1, step))
    shares = (np.arange(len(values) * 100) + 0.5) / (len(values) * 100)
    counts = {value: sum(one.at(share) == value for share in shares) for value in values}
    assert counts == dict.fromkeys(values, 100)
    assert list(one.all_values()) == list(one.points(2)) == values
    assert (one.at(0), one.at(1)) == (values[0], values[-1])
    assert one.probes() == (("low", values[0]), ("high", values[-1]))


def test_logarithmic_integers_weigh_by_the_logarithm() -> None:
    one = Integer(low=1, high=100, log=True)
    shares = (np.arange(20_000) + 0.5) / 20_000
    values = np.array([one.at(share) for share in shares])
    whole = math.log(100.5 / 0.5)
    for value in (1, 2, 10, 100):
        expected = math.log((value + 0.5) / (value - 0.5)) / whole
        assert np.mean(values == value) == pytest.approx(expected, abs=1e-4)
    assert one.points(3) == (1, 7, 100)
    assert len(one.all_values()) == 100


def test_a_choice_may_be_of_anything() -> None:
    parts: list[Any] = [{"name": "plain"}, None, "a", 3, 0.5, [1, 2], True]
    one = Choice(values=tuple(parts))
    assert [one.at((place + 0.5) / 7) for place in range(7)] == parts
    assert one.points(2) == one.all_values() == tuple(parts)
    assert one.probes()[1] == ("values[1]", None)


REFUSED: list[tuple[type[Any], dict[str, Any], str, str]] = [
    (Uniform, {"low": 1, "high": 1}, "high", "must be above low"),
    (Uniform, {"low": 2, "high": 1}, "high", "must be above low"),
    (Uniform, {"low": float("nan"), "high": 1}, "low", "finite"),
    (LogUniform, {"low": 0, "high": 1}, "low", "must be above 0"),
    (LogUniform, {"low": -1, "high": 1}, "low", "must be above 0"),
    (LogUniform, {"low": 1, "high": 0.5}, "high", "must be above low"),
    (OneMinusLogUniform, {"low": 0.9, "high": 1}, "high", "below 1"),
    (OneMinusLogUniform, {"low": -0.1, "high": 0.5}, "low", "at least 0"),
    (OneMinusLogUniform, {"low": 0.99, "high": 0.9}, "high", "must be above low"),
    (Integer, {"low": 1.5, "high": 3}, "low", "integer"),
    (Integer, {"low": 1, "high": 2.5}, "high", "integer"),
    (Integer, {"low": 3, "high": 3}, "high", "must be above low"),
    (Integer, {"low": 0, "high": 3, "log": True}, "log", "low of 1 or more"),
    (Integer, {"low": 1, "high": 9, "log": True, "step": 2}, "step", "must be 1"),
    (Integer, {"low": 1, "high": 9, "step": 0}, "step", "greater than 0"),
    (Choice, {"values": []}, "values", "at least one value"),
    (Choice, {"values": [1, 2, 1.0]}, "values", "must not repeat a value, as value 2 does"),
    (Choice, {"values": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]}, "values", "must not repeat"),
    (Choice, {"values": [float("nan")]}, "values", "plain values"),
    (Choice, {"values": [{1: 2}]}, "values", "not texts"),
    (Choice, {"values": [1], "when": {"a": []}}, "when", "at least one value of a"),
    (Choice, {"values": [1], "when": {"a": [object()]}}, "when", "not a plain value"),
    (Choice, {"values": [1], "low": 2}, "low", "Extra inputs"),
]


@pytest.mark.parametrize(("kind", "values", "place", "words"), REFUSED)
def test_what_no_value_can_be_drawn_from_is_refused(
    kind: type[Any], values: dict[str, Any], place: str, words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(values)
    (problem,) = caught.value.errors()
    assert problem["loc"] == (place,)
    assert words in problem["msg"]


def test_true_is_not_one() -> None:
    assert Choice(values=(True, 1)).values == (True, 1)
