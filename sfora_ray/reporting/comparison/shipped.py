"""Which fold of a compared pack is the one that ships: decided as for the pack alone, never by its score."""

from __future__ import annotations

from sfora_ray.comparison.records import Entry
from sfora_ray.pack.summary import FoldFacts


def shipped(entry: Entry) -> FoldFacts | None:
    """Return the first fold of at most one member's width that saw no test image, or None where there is none."""
    for fold in entry.folds:
        if fold.fitted_on != "test" and fold.dim <= entry.facts.dim and fold.is_of_pack:
            return fold
    return None
