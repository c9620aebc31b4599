"""The ablation by pack size: what is left of a difference when both sides are packs of 1, 2, ... members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfora_ray.comparison.records import SizePoint
from sfora_ray.comparison.scored import ScoredPack, Seeds
from sfora_ray.statistics import Subset, choose_subsets, subset_interval

Scores = Mapping[Subset, Mapping[str, float]]


def size_points(ours: ScoredPack, theirs: ScoredPack, shared: Seeds) -> list[SizePoint]:
    """Compare concatenations of identical choices of the shared seeds, at every size.

    The interval is the jackknife over seeds of the paired differences: seeds are what was drawn.
    """
    most = ours.evaluation.curve_subsets
    chosen = {size: choose_subsets(len(shared), size, most, seed=0) for size in range(1, len(shared) + 1)}
    every = [subset for some in chosen.values() for subset in some]
    first, other = ours.curve(shared, every), theirs.curve(shared, every)
    return [
        _point(ours, theirs, shared, metric, some, first, other)
        for some in chosen.values()
        for metric in first[some[0]]
    ]


def _point(
    ours: ScoredPack,
    theirs: ScoredPack,
    shared: Seeds,
    metric: str,
    subsets: Sequence[Subset],
    first: Scores,
    other: Scores,
) -> SizePoint:
    size = len(subsets[0])
    difference = subset_interval({s: other[s][metric] - first[s][metric] for s in subsets}, len(shared))
    return SizePoint(
        baseline=ours.label,
        other=theirs.label,
        size=size,
        dim=size * ours.member_dim,
        metric=metric,
        baseline_mean=sum(first[s][metric] for s in subsets) / len(subsets),
        other_mean=sum(other[s][metric] for s in subsets) / len(subsets),
        difference=difference.mean,
        ci95=difference.ci95,
        subsets=len(subsets),
        seeds=shared,
    )
