"""What a bigger pack brings: every size from one member to all, over choices of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfora_ray.config.pack import EvaluationOptions
from sfora_ray.pack.gather import SplitBlocks
from sfora_ray.pack.summary import CurvePoint
from sfora_ray.retrieval import pack_curve
from sfora_ray.statistics import choose_subsets

Subset = tuple[int, ...]


def size_curve(test: SplitBlocks, evaluation: EvaluationOptions, device: str) -> tuple[CurvePoint, ...]:
    """Return the metrics of concatenations of 1, 2, ... all members, without NMI."""
    num_members = len(test.blocks)
    chosen = {
        size: choose_subsets(num_members, size, evaluation.curve_subsets, seed=0) for size in range(1, num_members + 1)
    }
    subsets = [subset for some in chosen.values() for subset in some]
    metrics = pack_curve(test.blocks, test.labels, subsets, singletons=evaluation.singletons, device=device)
    return tuple(_point(size, some, metrics) for size, some in chosen.items())


def _point(size: int, subsets: Sequence[Subset], metrics: Mapping[Subset, Mapping[str, float]]) -> CurvePoint:
    values = {key: np.array([metrics[subset][key] for subset in subsets]) for key in metrics[subsets[0]]}
    ends = {key: tuple(np.percentile(column, (2.5, 97.5)).tolist()) for key, column in values.items()}
    return CurvePoint(
        size=size,
        subsets=len(subsets),
        metrics={key: float(column.mean()) for key, column in values.items()},
        ci95=ends if len(subsets) > 1 else None,
    )
