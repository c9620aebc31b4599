"""What each further member adds."""

from __future__ import annotations

from sfora_ray.pack.summary import CurvePoint, Summary
from sfora_ray.reporting.blocks import Column, Drawing, Paragraph, Section, Table
from sfora_ray.reporting.figures import draw_pack_curve
from sfora_ray.reporting.wording import SELECTION_STAMPS, interval, metric_order, metric_title, percent


def pack_size(summary: Summary) -> Section:
    """Return the pack-size curve and its table."""
    if not summary.pack_curve:
        return Section("Pack size", (Paragraph("There is no pack-size curve: no member finished.", "note"),))
    largest = max(point.size for point in summary.pack_curve)
    drawing = Drawing(
        "pack_curve",
        draw_pack_curve(summary.pack_curve),
        f"Recall@1 and MAP@R of concatenations of 1 to {largest} members",
        "Mean over subsets of the members; bars are the 95 % jackknife interval over members.",
    )
    return Section("Pack size", (drawing, _table(summary)))


def _table(summary: Summary) -> Table:
    metrics = metric_order(point.metrics for point in summary.pack_curve)
    columns = (
        Column("Members", numeric=True),
        Column("Dimensions", numeric=True),
        Column("Subsets", numeric=True),
        *(Column(metric_title(metric), numeric=True) for metric in metrics),
        Column("R@1, 95 %", numeric=True),
    )
    rows = tuple(_row(point, metrics, summary.pack.dim) for point in summary.pack_curve)
    return Table(f"Concatenations, in % ({SELECTION_STAMPS[summary.pack.selection]})", columns, rows)


def _row(point: CurvePoint, metrics: tuple[str, ...], dim: int) -> tuple[str, ...]:
    bounds = None if point.ci95 is None else point.ci95.get("recall_at_1")
    means = (percent(point.metrics.get(metric)) for metric in metrics)
    return (str(point.size), str(point.size * dim), str(point.subsets), *means, interval(bounds))
