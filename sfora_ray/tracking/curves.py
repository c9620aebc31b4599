"""Which points of a curve are new, and what becomes of values that are no numbers.

A resumed member tells its last epochs again; a curve must neither repeat nor go back. MLflow stores an
infinity as the largest double and its pages stumble over NaN, so neither is ever sent: they are counted
beside the curve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sfora_ray.tracking.base import MetricPoint
from sfora_ray.tracking.keys import metric_key, nonfinite_key


@dataclass(frozen=True)
class Last:
    """The newest point of one key."""

    step: int
    value: float


def new_points(points: Sequence[MetricPoint], last: Mapping[str, Last]) -> list[MetricPoint]:
    """Return the points to send, under stored keys, steps ascending and beyond ``last`` key by key.

    A value that is not finite becomes a point of ``nonfinite.<key>``, whose value counts them so far.
    """
    seen = dict(last)
    fresh: list[MetricPoint] = []
    for point in sorted(points, key=lambda candidate: candidate.step):
        stored = _storable(point, seen)
        before = seen.get(stored.key)
        if before is None or stored.step > before.step:
            seen[stored.key] = Last(stored.step, stored.value)
            fresh.append(stored)
    return fresh


def _storable(point: MetricPoint, seen: Mapping[str, Last]) -> MetricPoint:
    key = metric_key(point.key)
    if math.isfinite(point.value):
        return replace(point, key=key, value=float(point.value))
    counter = nonfinite_key(key)
    count = seen[counter].value if counter in seen else 0.0
    return replace(point, key=counter, value=count + 1.0)
