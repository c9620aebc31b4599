"""The searched space: entries in a declared order, some of which are there only where earlier ones say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sfora_ray.search.distributions import Distribution
from sfora_ray.search.identity import identity_of

MOST_COUNTED = 10_000
"""Spaces with more configurations are treated like endless ones."""

Choose = Callable[[str, Distribution], Any]


@dataclass(frozen=True)
class Space:
    """Dotted paths and what each may be.

    Attributes:
        entries: in the order in which they are decided and set; a condition looks at earlier ones.
    """

    entries: Mapping[str, Distribution]

    def decide(self, choose: Choose) -> dict[str, Any]:
        """Return a configuration: ``choose`` is asked for each entry whose conditions hold, in their order."""
        values: dict[str, Any] = {}
        for path, distribution in self.entries.items():
            if holds(distribution, values):
                values[path] = choose(path, distribution)
        return values

    def configurations(self, choices: Callable[[Distribution], tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
        """Yield every configuration once; the last entry changes fastest."""
        known: set[str] = set()
        for values in self._below(tuple(self.entries), {}, choices):
            identity = identity_of(values)
            if identity not in known:
                known.add(identity)
                yield values

    def _below(
        self, paths: tuple[str, ...], values: dict[str, Any], choices: Callable[[Distribution], tuple[Any, ...]]
    ) -> Iterator[dict[str, Any]]:
        if not paths:
            yield values
            return
        distribution = self.entries[paths[0]]
        if not holds(distribution, values):
            yield from self._below(paths[1:], values, choices)
            return
        for value in choices(distribution):
            yield from self._below(paths[1:], {**values, paths[0]: value}, choices)

    def all_configurations(self) -> Iterator[dict[str, Any]] | None:
        """Yield every configuration; none where an entry is continuous."""
        if any(one.all_values() is None for one in self.entries.values()):
            return None
        return self.configurations(lambda one: one.all_values() or ())

    def size(self) -> int | None:
        """Return how many configurations there are; none where there are more than :data:`MOST_COUNTED`."""
        configurations = self.all_configurations()
        return None if configurations is None else count_up_to_most(configurations)


def count_up_to_most(configurations: Iterator[dict[str, Any]]) -> int | None:
    """Return how many there are; none where there are more than :data:`MOST_COUNTED`."""
    count = sum(1 for _ in islice(configurations, MOST_COUNTED + 1))
    return count if count <= MOST_COUNTED else None


def holds(distribution: Distribution, values: Mapping[str, Any]) -> bool:
    """Return whether an entry's conditions hold among the values decided before it."""
    return all(_is_one_of(path, allowed, values) for path, allowed in distribution.when.items())


def _is_one_of(path: str, allowed: tuple[Any, ...], values: Mapping[str, Any]) -> bool:
    root = root_of(path, values)
    found = value_below(values[root], path[len(root) + 1 :]) if root is not None else MISSING
    return found is not MISSING and identity_of(found) in {identity_of(one) for one in allowed}


MISSING = object()
"""What is found where nothing is."""


def root_of(path: str, entries: Mapping[str, Any]) -> str | None:
    """Return the entry that ``path`` names or leads into; the longest if there are several, none if there is none."""
    keys = path.split(".")
    starts = (".".join(keys[:end]) for end in range(len(keys), 0, -1))
    return next((start for start in starts if start in entries), None)


def value_below(value: Any, path: str) -> Any:
    """Return what stands at a dotted path below a mapping, or :data:`MISSING`."""
    for key in path.split(".") if path else ():
        if not isinstance(value, Mapping) or key not in value:
            return MISSING
        value = value[key]
    return value
