"""What a tracker is told of each record: points and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfora_ray.config.member import MemberResult
from sfora_ray.pack.summary import CurvePoint, FoldFacts, Summary, shipped_fold
from sfora_ray.tracking import DESCRIPTION_TAG, MetricPoint
from sfora_ray.training.member_folder import EpochRecord

_UNTOLD = ("output", "tracking", "cache_dir")
"""Parts of a configuration that say where things are, not what is computed."""


def flat(values: Mapping[str, Any], leave_out: tuple[str, ...] = ()) -> dict[str, str]:
    """Return nested values as ``a.b.c`` to text; where runs go and what tracks them is left out."""
    hidden = {*_UNTOLD, *leave_out}
    return dict(_leaves("", {key: value for key, value in values.items() if key not in hidden}))


def _leaves(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(f"{place}.{key}" if place else str(key), item)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(f"{place}.{index}", item)
    else:
        yield place, str(value)


def epoch_points(record: EpochRecord) -> Iterator[MetricPoint]:
    """Yield the points of one epoch; the step is the epoch."""
    # MLflow's pages show first what is told first.
    values = {"loss" if name == "total" else f"loss.{name}": value for name, value in record.loss.items()}
    for split, metrics in record.metrics.items():
        values |= {f"{split}.{key}": value for key, value in metrics.items()}
    values |= {f"lr.{group}": value for group, value in record.lr.items()}
    values |= {f"state.{name}": value for name, value in record.state.items()}
    values |= {"images_per_second": record.images_per_second, "epoch_seconds": record.seconds}
    yield from points(values, record.epoch, record.time_ms)


def pack_points(summary: Summary, step: int, time_ms: int) -> Iterator[MetricPoint]:
    """Yield the parent's points: the spread over members, and each fold's metrics."""
    for key, spread in summary.single.items():
        low, high = spread.ci95 or (None, None)
        values = {"mean": spread.mean, "std": spread.std, "n": float(spread.n), "ci95_lo": low, "ci95_hi": high}
        known = {f"{key}.{name}": value for name, value in values.items() if value is not None}
        yield from points(known, step, time_ms)
    for fold in summary.folds:
        yield from points(fold_values(fold), step, time_ms, prefix=f"fold.{fold.name.replace('+', '_then_')}.")


def fold_values(fold: FoldFacts) -> dict[str, float]:
    """Return a fold's metrics and what it retains."""
    return {**fold.metrics, "retained": fold.retained}


def curve_points(point: CurvePoint, time_ms: int) -> Iterator[MetricPoint]:
    """Yield the metrics of one pack size, which is the step, and the ends of their intervals."""
    values = dict(point.metrics)
    for key, (low, high) in (point.ci95 or {}).items():
        values |= {f"{key}.ci95_lo": low, f"{key}.ci95_hi": high}
    yield from points(values, point.size, time_ms)


def points(values: Mapping[str, float], step: int, time_ms: int, prefix: str = "") -> Iterator[MetricPoint]:
    """Yield a point for each value."""
    for key, value in values.items():
        yield MetricPoint(f"{prefix}{key}", value, step, time_ms)


def member_tags(result: MemberResult | None) -> dict[str, str]:
    """Return the tags of a member that say how it ended, empty while it has not."""
    ended = {
        "sfora.status": result.status,
        "sfora.cause": result.cause,
        "sfora.reason": result.reason,
        "sfora.restarts": str(len(result.restarts)),
        "sfora.restart_reasons": "; ".join(result.restarts),
        "sfora.device": result.device,
        "sfora.selected_on": result.selected_on or "",
        "sfora.best_epoch": str(result.best_epoch or ""),
        "sfora.warnings": "; ".join(result.warnings),
    } if result else {}  # fmt: skip
    return ended or dict.fromkeys(("sfora.status", "sfora.cause", "sfora.reason"), "")


def pack_tags(summary: Summary) -> dict[str, str]:
    """Return the parent's tags that say what was trained on what."""
    pack = summary.pack
    return {
        "sfora.dataset": pack.dataset,
        "sfora.dataset_digest": pack.dataset_digest,
        "sfora.objective": pack.objective,
        "sfora.recipe": pack.recipe,
        "sfora.num_members": str(pack.num_members),
        "sfora.num_planned": str(pack.num_planned),
        "sfora.weights": pack.weights,
        DESCRIPTION_TAG: pack_story(summary),
    }


def pack_story(summary: Summary) -> str:
    """Return what a pack came to in one sentence: one member, the concatenation, and the fold that ships."""
    pack, single, shipped = summary.pack, summary.single["recall_at_1"], shipped_fold(summary)
    spread = "" if single.std is None else f" +- {100 * single.std:.2f}"
    parts = [f"one member {100 * single.mean:.2f}{spread} (n = {single.n})"]
    whole = next((fold for fold in summary.folds if fold.name == "concat" and fold.is_of_pack), None)
    if whole is not None:
        parts.append(f"{whole.num_members} together {100 * whole.metrics['recall_at_1']:.2f} at {whole.dim}-d")
    if shipped is not None:
        parts.append(f"folded by {shipped.name} {100 * shipped.metrics['recall_at_1']:.2f} at {shipped.dim}-d")
    return (
        f"{pack.method} on {pack.dataset}, Recall@1 in per cent of {pack.num_queries} queries: {', '.join(parts)}. "
        f"Selection: {pack.selection}. The report is among the artifacts."
    )


def fold_tags(fold: FoldFacts) -> dict[str, str]:
    """Return the tags of a fold."""
    return {
        "sfora.kind": "fold",
        "sfora.fold": fold.name,
        "sfora.fitted_on": fold.fitted_on,
        "sfora.dim": str(fold.dim),
        "sfora.upper_bound": str(fold.fitted_on == "test").lower(),
        "sfora.num_members": str(fold.num_members),
    }
