"""Retrieval metrics by plain loops over a sorted list, in float64."""

import numpy as np

from sfora_ray.arrays import Float, Float32, Int64


def unit(*degrees: float) -> Float32:
    """2-D unit vectors at these degrees."""
    radians = np.deg2rad(np.array(degrees, dtype=np.float64))
    return np.stack([np.cos(radians), np.sin(radians)], 1).astype(np.float32)


def slow_metrics(
    queries: Float, labels: Int64, gallery: Float, gallery_labels: Int64, *, within: bool
) -> dict[str, float]:
    """Return the mean metrics over queries that have a partner."""
    rows: list[dict[str, float]] = []
    for query in range(len(queries)):
        order = sorted(
            (row for row in range(len(gallery)) if not (within and row == query)),
            key=lambda row: (
                -float(queries[query].astype(np.float64) @ gallery[row].astype(np.float64)),
                row,
            ),
        )
        hits = [bool(gallery_labels[row] == labels[query]) for row in order]
        right = sum(hits)
        if right:
            rows.append(_one(hits, right))
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def _one(hits: list[bool], right: int) -> dict[str, float]:
    precisions = [sum(hits[: k + 1]) / (k + 1) if hit else 0.0 for k, hit in enumerate(hits)]
    found = {f"recall_at_{k}": float(any(hits[:k])) for k in (1, 2, 4, 8)}
    return found | {
        "map_at_r": sum(precisions[:right]) / right,
        "mean_average_precision": sum(precisions) / right,
        "r_precision": sum(hits[:right]) / right,
    }
