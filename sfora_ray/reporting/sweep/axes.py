"""Searched parameters as axes: where a value stands, between 0 and 1, and what is written beside it.

A logarithmic range is laid out by logarithms, one of ``1 - x`` by those of ``1 - x``, choices side by side in their
order. What a trial does not have, for its condition did not hold, stands nowhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfora_ray.config.sweep import SweepConfig
from sfora_ray.search import Distribution
from sfora_ray.search.distributions import Choice, Integer, LogUniform, OneMinusLogUniform, Uniform
from sfora_ray.search.identity import identity_of

_LONGEST_LABEL = 14


@dataclass(frozen=True)
class Tick:
    """A place on an axis and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class ParameterAxis:
    """One searched path."""

    path: str
    distribution: Distribution

    @property
    def scale(self) -> str:
        """Return how the axis is laid out, for its title; empty where that needs no word."""
        if isinstance(self.distribution, LogUniform) or (
            isinstance(self.distribution, Integer) and self.distribution.log
        ):
            return "log"
        return "log of 1 - x" if isinstance(self.distribution, OneMinusLogUniform) else ""

    def at(self, values: Mapping[str, Any]) -> float | None:
        """Return where a trial stands; None where it has no such value, or one beyond the range."""
        if self.path not in values:
            return None
        place = self._place(values[self.path])
        return place if place is not None and -0.02 <= place <= 1.02 else None

    def ticks(self) -> tuple[Tick, ...]:
        """Return the ends and some round values between, or the choices."""
        if isinstance(self.distribution, Choice):
            return tuple(Tick(self._place(value) or 0.0, _label(value)) for value in self.distribution.values)
        return tuple(Tick(place, f"{value:g}") for value in self._round() if (place := self._place(value)) is not None)

    def _place(self, value: Any) -> float | None:
        one = self.distribution
        if isinstance(one, Choice):
            known = [identity_of(choice) for choice in one.values]
            return (known.index(identity_of(value)) + 0.5) / len(known) if identity_of(value) in known else None
        low, high = self._ends()
        scaled = self._scaled(float(value))
        return (scaled - low) / (high - low)

    def _ends(self) -> tuple[float, float]:
        one = self.distribution
        assert isinstance(one, (Uniform, LogUniform, OneMinusLogUniform, Integer)), "a choice has no ends"
        return self._scaled(one.low), self._scaled(one.high)

    def _scaled(self, value: float) -> float:
        if self.scale == "log":
            return math.log(value)
        return -math.log(1 - value) if self.scale else value

    def _round(self) -> Sequence[float]:
        one = self.distribution
        assert isinstance(one, (Uniform, LogUniform, OneMinusLogUniform, Integer)), "a choice has no ends"
        if isinstance(one, OneMinusLogUniform):
            return [1 - rest for rest in reversed(_decades(1 - one.high, 1 - one.low))]
        if self.scale:
            return _decades(one.low, one.high)
        if isinstance(one, Integer) and one.high - one.low <= 8:
            return range(one.low, one.high + 1)
        return [one.low, (one.low + one.high) / 2, one.high]


def parameter_axes(config: SweepConfig) -> tuple[ParameterAxis, ...]:
    """Return an axis for each searched path, in the order of the space."""
    return tuple(ParameterAxis(path, one) for path, one in config.space.items())


def _decades(low: float, high: float) -> list[float]:
    """Return the ends, and of 1, 2 and 5 times powers of ten what lies well between; few where there are many."""
    steps = (1.0,) if high / low > 30 else (1.0, 2.0, 5.0)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    between = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return [low, *(value for value in between if low * 1.3 < value < high / 1.3), high]


def _label(value: Any) -> str:
    named = value.get("name", value) if isinstance(value, Mapping) else value
    text = named if isinstance(named, str) else json.dumps(named, ensure_ascii=False)
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
