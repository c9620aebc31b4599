"""The contract of a searcher: from what was seen so far to the next configuration, without a memory of its own.

A searcher is a pure function of its seed, the number of the trial and what it is told. So a sweep that was killed
goes on as if nothing had happened: whoever has the records has the searcher's whole state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sfora_ray.options import Options
from sfora_ray.search.identity import identity_of
from sfora_ray.search.space import Space

Values = Mapping[str, Any]
"""A configuration: dotted path to JSON value."""

Status = Literal["", "finished", "stopped", "non_finite", "failed"]
"""How a trial ended; empty while it has not."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a searcher learns about another trial.

    Attributes:
        number: of the trial.
        values: its configuration.
        value: its score, more is better and 0 is the worst there is; none while it has not ended.
        epoch: the epoch that the score is of.
        status: how it ended; empty while it has not.
    """

    number: int
    values: Values
    value: float | None = None
    epoch: int = 0
    status: Status = ""


class Searcher(Protocol):
    """Proposes configurations."""

    def propose(self, number: int, told: Sequence[Told]) -> dict[str, Any] | None:
        """Return the configuration of trial ``number``, or none if the space is used up.

        Pure: the same arguments give the same answer, in whatever order the trials are told. A configuration that
        another trial has is not proposed again.
        """
        ...


class SearcherOptions(Options, ABC):
    """Options of a searcher."""

    name: str
    """Key in the searcher table."""

    @abstractmethod
    def build(self, space: Space) -> Searcher:
        """Make the searcher.

        Raises:
            ConfigError: a package it needs is not installed, or it cannot search this space.
        """

    @abstractmethod
    def size(self, space: Space) -> int | None:
        """Return how many different configurations it can propose; none where they are too many to count."""


def tried_before(number: int, told: Sequence[Told]) -> frozenset[str]:
    """Return the identities of the configurations of all other trials."""
    return frozenset(identity_of(one.values) for one in told if one.number != number)
