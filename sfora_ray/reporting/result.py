"""A pack's main result: one member, the concatenation, the fold that ships."""

from __future__ import annotations

from sfora_ray.pack.summary import Summary

CONCATENATION = "concat"


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
