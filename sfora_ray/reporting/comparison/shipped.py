"""Which folds are shown first: those that ship, decided as for each pack alone, never by a score."""

from __future__ import annotations

from sfora_ray.comparison.records import CONCAT_SYSTEM, FOLD_SYSTEM, SINGLE_SYSTEM, Comparison, Entry, QueryTest
from sfora_ray.pack.summary import FoldFacts


def shipped(entry: Entry) -> FoldFacts | None:
    """Return the first fold of at most one member's width that saw no test image, or None where there is none."""
    for fold in entry.folds:
        if fold.fitted_on != "test" and fold.dim <= entry.facts.dim and fold.is_of_pack:
            return fold
    return None


def leading_queries(comparison: Comparison) -> tuple[QueryTest, ...]:
    """Return the tests of one member, of the concatenation and of the baseline's shipped fold.

    A pack may have a dozen folds, and whoever looks at all of them finds a difference somewhere.
    """
    ships = shipped(comparison.baseline)
    systems = {SINGLE_SYSTEM, CONCAT_SYSTEM} | (set() if ships is None else {f"{FOLD_SYSTEM}{ships.name}"})
    return tuple(test for test in comparison.queries if test.system in systems)
