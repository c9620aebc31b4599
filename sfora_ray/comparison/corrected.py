"""Holm's correction within families of tests that ask the same of several packs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from sfora_ray.comparison.records import QueryTest, SeedTest
from sfora_ray.statistics import holm

Test = TypeVar("Test", SeedTest, QueryTest)


def corrected(tests: Sequence[Test], family_of: Callable[[Test], Hashable]) -> tuple[Test, ...]:
    """Return the tests with ``p_holm`` adjusted over all tests of the same family."""
    families: dict[Hashable, list[int]] = defaultdict(list)
    for place, test in enumerate(tests):
        families[family_of(test)].append(place)
    adjusted = list(tests)
    for places in families.values():
        for place, p_value in zip(places, holm([tests[place].p_value for place in places]), strict=True):
            adjusted[place] = tests[place].model_copy(update={"p_holm": p_value})
    return tuple(adjusted)
