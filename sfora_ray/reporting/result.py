"""A pack's main result: one member, the concatenation, the best honest fold at one member's width."""

from __future__ import annotations

from sfora_ray.pack.summary import FoldFacts, Summary

CONCATENATION = "concat"
SINGLE_PREFIX = "single:"


def concatenation_recall(summary: Summary) -> float | None:
    """Return Recall@1 of all members' concatenation; None for fewer than two, for that is no pack."""
    if summary.pack.num_members < 2:
        return None
    for fold in summary.folds:
        if fold.name == CONCATENATION:
            return fold.metrics.get("recall_at_1")
    if not summary.pack_curve:
        return None
    return max(summary.pack_curve, key=lambda point: point.size).metrics.get("recall_at_1")


def honest_folds(summary: Summary) -> tuple[FoldFacts, ...]:
    """Return the folds of the whole pack that end at one member's width and never saw a test image."""
    return tuple(
        fold
        for fold in summary.folds
        if fold.num_members > 1
        and fold.dim == summary.pack.dim
        and fold.fitted_on != "test"
        and fold.name != CONCATENATION
        and not fold.name.startswith(SINGLE_PREFIX)
        and "recall_at_1" in fold.metrics
    )


def best_honest_fold(summary: Summary) -> FoldFacts | None:
    """Return the one of :func:`honest_folds` with the highest Recall@1, the first of equals."""
    return max(honest_folds(summary), key=lambda fold: fold.metrics["recall_at_1"], default=None)
