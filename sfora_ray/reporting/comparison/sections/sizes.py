"""Does a difference between members survive in a pack? The packs at each size, alone and against each other."""

from __future__ import annotations

from sfora_ray.comparison.records import Comparison, SizePoint
from sfora_ray.reporting.blocks import Block, Column, Drawing, Paragraph, Section, Table
from sfora_ray.reporting.comparison.figures import draw_ablation, draw_pack_curves
from sfora_ray.reporting.comparison.figures.ablation import METRICS, seeds_stamp
from sfora_ray.reporting.comparison.wording import difference, members_stamp, selection_sentence, selection_stamp
from sfora_ray.reporting.wording import ABSENT, metric_title, percent

_COLUMNS = (
    Column("Pack"),
    Column("Members", numeric=True),
    Column("Dimensions", numeric=True),
    Column("Choices", numeric=True),
    *(
        column
        for metric in METRICS
        for column in (
            Column(f"Baseline {metric_title(metric)}", numeric=True),
            Column("Difference [95 %]", numeric=True),
        )
    ),
)


def sizes_section(comparison: Comparison) -> Section:
    """Return the pack-size curves over each other and the ablation by pack size."""
    blocks: list[Block] = [_curves(comparison)]
    if comparison.sizes:
        blocks += [_ablation(comparison), _table(comparison)]
    else:
        blocks.append(Paragraph("No pack was compared with the baseline at equal sizes.", "note"))
    return Section("By pack size", tuple(blocks))


def _curves(comparison: Comparison) -> Drawing:
    return Drawing(
        "comparison_pack_curves",
        draw_pack_curves(comparison.entries),
        "Recall@1 and MAP@R of concatenations over pack size, one line a pack",
        "Each pack by its own members: mean over choices of that many; bars are 95 % jackknife intervals over members, "
        f"{members_stamp(comparison.entries)}; the whole pack has none. {selection_sentence(comparison.entries)}",
    )


def _ablation(comparison: Comparison) -> Drawing:
    return Drawing(
        "comparison_ablation",
        draw_ablation(comparison),
        f"Difference to {comparison.baseline.label} at each pack size with its interval",
        "Packs of the same seeds against each other, in points of per cent: mean over choices of seeds; bars are 95 % "
        f"jackknife intervals over seeds, {seeds_stamp(comparison.sizes)}; all shared seeds together have none. "
        f"{selection_sentence(comparison.entries)}",
    )


def _table(comparison: Comparison) -> Table:
    keys = dict.fromkeys((point.other, point.size) for point in comparison.sizes)
    caption = (
        f"Concatenations of the same seeds minus those of {comparison.baseline.label}, in points of % "
        f"({selection_stamp(comparison.entries)}; {seeds_stamp(comparison.sizes)})"
    )
    return Table(caption, _COLUMNS, tuple(_row(comparison, other, size) for other, size in keys))


def _row(comparison: Comparison, other: str, size: int) -> tuple[str, ...]:
    points = [point for point in comparison.sizes if (point.other, point.size) == (other, size)]
    by_metric = {point.metric: point for point in points}
    cells = [cell for metric in METRICS for cell in _cells(by_metric.get(metric))]
    return (other, str(size), str(points[0].dim), str(points[0].subsets), *cells)


def _cells(point: SizePoint | None) -> tuple[str, str]:
    return (
        (ABSENT, ABSENT) if point is None else (percent(point.baseline_mean), difference(point.difference, point.ci95))
    )
