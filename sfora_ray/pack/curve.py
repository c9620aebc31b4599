"""What a bigger pack brings: every size from one member to all, over choices of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfora_ray.config.pack import EvaluationOptions
from sfora_ray.pack.gather import SplitBlocks
from sfora_ray.pack.summary import CurvePoint
from sfora_ray.retrieval import pack_curve
from sfora_ray.statistics import Subset, choose_subsets, subset_interval


def size_curve(test: SplitBlocks, evaluation: EvaluationOptions, device: str) -> tuple[CurvePoint, ...]:
    """Return the metrics of concatenations of 1, 2, ... all members, without NMI."""
    num_members = len(test.blocks)
    chosen = {
        size: choose_subsets(num_members, size, evaluation.curve_subsets, seed=0) for size in range(1, num_members + 1)
    }
    subsets = [subset for some in chosen.values() for subset in some]
    metrics = pack_curve(test.blocks, test.labels, subsets, singletons=evaluation.singletons, device=device)
    return tuple(_point(size, some, metrics, num_members) for size, some in chosen.items())


def _point(
    size: int, subsets: Sequence[Subset], metrics: Mapping[Subset, Mapping[str, float]], num_members: int
) -> CurvePoint:
    keys = metrics[subsets[0]]
    over = {key: subset_interval({s: metrics[s][key] for s in subsets}, num_members) for key in keys}
    ends = {key: interval.ci95 for key, interval in over.items() if interval.ci95 is not None}
    return CurvePoint(
        size=size,
        subsets=len(subsets),
        metrics={key: interval.mean for key, interval in over.items()},
        ci95=ends or None,
    )
