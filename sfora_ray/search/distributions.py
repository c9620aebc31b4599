"""What a searched value may be: each distribution is known by its quantiles, from which draws and grids follow.

Drawn numbers are rounded to six significant digits (of ``1 - x`` where that is what matters), so that what a person
reads in a record or a config is the very value that was trained.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Literal

from pydantic import PositiveInt, ValidationInfo, field_validator

from sfora_ray.options import Options
from sfora_ray.search.identity import identity_of

Probe = tuple[str, Any]
"""Where in an entry a value stands, such as ``low`` or ``values[1]``, and the value."""


class Distribution(Options, ABC):
    """One entry of a space."""

    distribution: str
    """Key in the table of distributions."""
    when: dict[str, tuple[Any, ...]] = {}
    """Only where earlier entries have one of these values; a path may also lead into an earlier mapping."""

    @field_validator("when")
    @classmethod
    def _waits_for_plain_values(cls, when: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        for path, allowed in when.items():
            if not allowed:
                raise ValueError(f"must name at least one value of {path}")
            identity_of(allowed)
        return when

    @abstractmethod
    def at(self, share: float) -> Any:
        """Return the value below which ``share`` (0 to 1) of the distribution lies."""

    @abstractmethod
    def points(self, count: int) -> tuple[Any, ...]:
        """Return the values of a grid: all of them, or ``count`` equally spaced quantiles of something continuous."""

    @abstractmethod
    def all_values(self) -> tuple[Any, ...] | None:
        """Return every value it can take; none where they are too many to be told apart."""

    @abstractmethod
    def probes(self) -> tuple[Probe, ...]:
        """Return the values that must be valid for every other to be: both ends, or each choice."""


class Continuous(Distribution):
    """Numbers between two ends."""

    low: float
    """The smallest value."""
    high: float
    """The largest value."""

    @field_validator("high")
    @classmethod
    def _is_above_low(cls, high: float, info: ValidationInfo) -> float:
        _check_above(high, info)
        return high

    def points(self, count: int) -> tuple[float, ...]:
        """Return ``count`` equally spaced quantiles, both ends among them."""
        return tuple(dict.fromkeys(self.at(share) for share in _shares(count)))

    def all_values(self) -> tuple[Any, ...] | None:
        """Return none, for there are too many."""
        return None

    def probes(self) -> tuple[Probe, ...]:
        """Return both ends."""
        return ("low", self.low), ("high", self.high)

    @abstractmethod
    def at(self, share: float) -> float:
        """Return the value below which ``share`` (0 to 1) of the distribution lies."""

    def nearest(self, value: float) -> float:
        """Return the nearest value between the ends that has few digits."""
        return min(max(_short(value), self.low), self.high)

    def perturbed(self, value: float, factor: float) -> float:
        """Return ``value * factor``, within the ends."""
        return self.nearest(value * factor)


class Uniform(Continuous):
    """Every value between the ends is as likely."""

    distribution: Literal["uniform"] = "uniform"

    def at(self, share: float) -> float:
        """Return a quantile."""
        return self.nearest(self.low + share * (self.high - self.low))


class LogUniform(Continuous):
    """The logarithm is uniform: as likely between 0.1 and 1 as between 1 and 10."""

    distribution: Literal["log_uniform"] = "log_uniform"

    @field_validator("low")
    @classmethod
    def _is_above_zero(cls, low: float) -> float:
        if low <= 0:
            raise ValueError("must be above 0, for what is log-uniform never gets to 0")
        return low

    def at(self, share: float) -> float:
        """Return a quantile."""
        return self.nearest(_between_logs(self.low, self.high, share))


class OneMinusLogUniform(Continuous):
    """The logarithm of ``1 - x`` is uniform, as suits a momentum: 0.9 to 0.99 is as likely as 0.99 to 0.999."""

    distribution: Literal["one_minus_log_uniform"] = "one_minus_log_uniform"

    @field_validator("low", "high")
    @classmethod
    def _is_a_share_below_one(cls, end: float) -> float:
        if not 0 <= end < 1:
            raise ValueError("must be at least 0 and below 1, for 1 - x is log-uniform and never gets to 0")
        return end

    def at(self, share: float) -> float:
        """Return a quantile."""
        return self.nearest(1 - _between_logs(1 - self.low, 1 - self.high, share))

    def nearest(self, value: float) -> float:
        """Return the nearest value between the ends of which ``1 - x`` has few digits."""
        # The subtraction leaves noise in the last digits.
        return min(max(float(f"{1 - _short(1 - value):.15g}"), self.low), self.high)

    def perturbed(self, value: float, factor: float) -> float:
        """Return ``1 - (1 - x) * factor``, within the ends."""
        return self.nearest(1 - (1 - value) * factor)


class Integer(Distribution):
    """Whole numbers from ``low`` in steps, up to ``high``."""

    distribution: Literal["integer"] = "integer"
    low: int
    """The smallest value."""
    high: int
    """No value is above it."""
    log: bool = False
    """The logarithm is uniform; goes with a step of 1 and values from 1."""
    step: PositiveInt = 1

    @field_validator("high")
    @classmethod
    def _is_above_low(cls, high: int, info: ValidationInfo) -> int:
        _check_above(high, info)
        return high

    @field_validator("log")
    @classmethod
    def _logarithms_begin_at_one(cls, log: bool, info: ValidationInfo) -> bool:
        if log and info.data.get("low", 1) < 1:
            raise ValueError(f"needs a low of 1 or more, not {info.data['low']}")
        return log

    @field_validator("step")
    @classmethod
    def _logarithms_have_no_steps(cls, step: int, info: ValidationInfo) -> int:
        if info.data.get("log") and step != 1:
            raise ValueError("must be 1 where log is true")
        return step

    @property
    def num_values(self) -> int:
        """Return how many values there are."""
        return (self.high - self.low) // self.step + 1

    @property
    def last(self) -> int:
        """Return the largest value that the steps reach."""
        return self.low + (self.num_values - 1) * self.step

    def at(self, share: float) -> int:
        """Return a quantile."""
        if self.log:
            return min(max(round(_between_logs(self.low - 0.5, self.high + 0.5, share)), self.low), self.high)
        return self.low + min(int(share * self.num_values), self.num_values - 1) * self.step

    def points(self, count: int) -> tuple[int, ...]:
        """Return every step; of a logarithmic range at most ``count`` values."""
        if not self.log or self.num_values <= count:
            return tuple(range(self.low, self.high + 1, self.step))
        return tuple(dict.fromkeys(self.at(share) for share in _shares(count)))

    def all_values(self) -> tuple[int, ...]:
        """Return every step."""
        return tuple(range(self.low, self.high + 1, self.step))

    def probes(self) -> tuple[Probe, ...]:
        """Return both ends."""
        return ("low", self.low), ("high", self.last)


class Choice(Distribution):
    """One of some values of any kind, also whole parts of a config."""

    distribution: Literal["choice"] = "choice"
    values: tuple[Any, ...]
    """What to choose from, each as likely."""

    @field_validator("values")
    @classmethod
    def _are_different_plain_values(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not values:
            raise ValueError("must name at least one value to choose from")
        known: set[str] = set()
        for place, value in enumerate(values):
            try:
                identity = identity_of(value)
            except ValueError as error:
                raise ValueError(f"must be plain values, but of value {place}, {error}") from None
            if identity in known:
                raise ValueError(f"must not repeat a value, as value {place} does")
            known.add(identity)
        return values

    def at(self, share: float) -> Any:
        """Return a quantile, in the order in which the values stand."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def points(self, count: int) -> tuple[Any, ...]:
        """Return every value."""
        del count
        return self.values

    def all_values(self) -> tuple[Any, ...]:
        """Return every value."""
        return self.values

    def probes(self) -> tuple[Probe, ...]:
        """Return every value."""
        return tuple((f"values[{place}]", value) for place, value in enumerate(self.values))


def _check_above(high: float, info: ValidationInfo) -> None:
    low = info.data.get("low")
    if low is not None and high <= low:
        raise ValueError(f"must be above low ({low})")


def _shares(count: int) -> list[float]:
    return [step / (count - 1) for step in range(count)] if count > 1 else [0.5]


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _between_logs(low: float, high: float, share: float) -> float:
    return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
