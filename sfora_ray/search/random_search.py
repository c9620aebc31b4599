"""Random search: every trial draws from a stream of its own, so draws do not depend on what else runs.

Bergstra, Bengio: Random Search for Hyper-Parameter Optimization, JMLR 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from sfora_ray.randomness import numpy_generator
from sfora_ray.search.base import SearcherOptions, Told, tried_before
from sfora_ray.search.identity import identity_of
from sfora_ray.search.space import Space

_TRIES = 100
"""Draws before what is left is listed; only small discrete spaces need more than one."""


@dataclass(frozen=True)
class RandomSearcher:
    """Draws each configuration independently."""

    space: Space
    seed: int

    def propose(self, number: int, told: Sequence[Told]) -> dict[str, Any] | None:
        """Return a new draw; none if every configuration has been tried."""
        tried = tried_before(number, told)
        draws = (self.draw(number, again) for again in range(_TRIES))
        fresh = next((values for values in draws if identity_of(values) not in tried), None)
        return self._one_of_the_rest(number, tried) if fresh is None else fresh

    def draw(self, number: int, again: int = 0) -> dict[str, Any]:
        """Return the draw of a trial; ``again`` counts further ones."""
        generator = numpy_generator(self.seed, "search", number, *([again] if again else []))
        return self.space.decide(lambda _, distribution: distribution.at(float(generator.random())))

    def _one_of_the_rest(self, number: int, tried: frozenset[str]) -> dict[str, Any] | None:
        if self.space.size() is None:
            return None
        rest = [values for values in self.space.all_configurations() or () if identity_of(values) not in tried]
        return rest[int(numpy_generator(self.seed, "search", number, "rest").integers(len(rest)))] if rest else None


class RandomOptions(SearcherOptions):
    """Independent draws."""

    name: Literal["random"] = "random"
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Names the draws."""

    def build(self, space: Space) -> RandomSearcher:
        """Make the searcher."""
        return RandomSearcher(space, self.seed)

    def size(self, space: Space) -> int | None:
        """Return the number of configurations of a space without continuous entries."""
        return space.size()
