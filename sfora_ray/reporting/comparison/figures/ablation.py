"""Where a difference comes from: packs of the same seeds against each other, at each pack size."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sfora_ray.comparison.records import Comparison, SizePoint
from sfora_ray.reporting.comparison.figures.style import (
    Look,
    add_legend,
    add_stamp,
    bars,
    offsets,
    point_style,
    zero_line,
)
from sfora_ray.reporting.comparison.wording import selection_stamp
from sfora_ray.reporting.figures.style import draw, say_empty
from sfora_ray.reporting.wording import metric_title

METRICS = ("recall_at_1", "map_at_r")


def draw_ablation(comparison: Comparison) -> str:
    """Draw the difference to the baseline (points of per cent) at each pack size, one line a pack."""

    def paint(figure: Figure) -> None:
        add_stamp(figure, ["Same seeds on both sides; bar: 95 % jackknife interval over seeds (none where all are in); "
                           + seeds_stamp(comparison.sizes), selection_stamp(comparison.entries)])  # fmt: skip
        panels = figure.subplots(1, 2)
        for axes, metric in zip(panels, METRICS, strict=True):
            axes.set_title(f"{metric_title(metric)} minus that of {comparison.baseline.label}", fontsize=9)
            axes.set_xlabel("members in the pack")
            _panel(axes, comparison, metric)
        panels[0].set_ylabel("points of per cent")
        add_legend(figure, panels[0])

    return draw("comparison_ablation", 3.7, paint)


def seeds_stamp(points: Sequence[SizePoint]) -> str:
    """Return how many seeds the pairs share."""
    counts = {point.other: len(point.seeds) for point in points}
    if len(set(counts.values())) <= 1:
        return f"n = {next(iter(counts.values()), 0)} shared seeds"
    return "n = " + ", ".join(f"{number} ({label})" for label, number in counts.items()) + " shared seeds"


def _panel(axes: Axes, comparison: Comparison, metric: str) -> None:
    others = comparison.others
    for place, (entry, offset) in enumerate(zip(others, offsets(len(others), 0.4), strict=True), start=1):
        shown = [point for point in comparison.sizes if point.other == entry.label and point.metric == metric]
        if not shown:
            continue
        means = [point.difference for point in shown]
        axes.errorbar(
            [point.size + offset for point in shown],
            [100 * mean for mean in means],
            yerr=bars(means, [point.ci95 for point in shown]),
            label=entry.label,
            linestyle=Look.of(place).dashes,
            **point_style(Look.of(place)),
        )
    if not axes.lines:
        say_empty(axes, "no pack shares seeds with the baseline")
        return
    zero_line(axes, vertical=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
