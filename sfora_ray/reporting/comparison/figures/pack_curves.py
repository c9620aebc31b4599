"""What each further member adds, packs over each other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sfora_ray.comparison.records import Entry
from sfora_ray.reporting.comparison.figures.style import Look, add_legend, add_stamp, bars, offsets, point_style
from sfora_ray.reporting.comparison.wording import members_stamp, selection_stamp
from sfora_ray.reporting.figures.style import draw, say_empty
from sfora_ray.reporting.wording import metric_title

_METRICS = ("recall_at_1", "map_at_r")


def draw_pack_curves(entries: Sequence[Entry]) -> str:
    """Draw Recall@1 and MAP@R (per cent) of concatenations over pack size, each pack by its own members."""

    def paint(figure: Figure) -> None:
        add_stamp(figure, ["Mean over choices of members; bar: 95 % jackknife interval over members; "
                           + members_stamp(entries), selection_stamp(entries)])  # fmt: skip
        panels = figure.subplots(1, 2)
        for axes, metric in zip(panels, _METRICS, strict=True):
            axes.set_title(f"{metric_title(metric)} of the concatenation")
            axes.set_xlabel("members in the pack")
            _panel(axes, entries, metric)
        panels[0].set_ylabel("per cent")
        add_legend(figure, panels[0])

    return draw("comparison_pack_curves", 3.7, paint)


def _panel(axes: Axes, entries: Sequence[Entry], metric: str) -> None:
    for place, (entry, offset) in enumerate(zip(entries, offsets(len(entries)), strict=True)):
        shown = [point for point in entry.curve if metric in point.metrics]
        if not shown:
            continue
        means = [point.metrics[metric] for point in shown]
        bounds = [None if point.ci95 is None else point.ci95.get(metric) for point in shown]
        sizes = [point.size + offset for point in shown]
        look = Look.of(place)
        height = [100 * mean for mean in means]
        axes.errorbar(
            sizes, height, yerr=bars(means, bounds), label=entry.label, linestyle=look.dashes, **point_style(look)
        )
    if axes.lines:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        say_empty(axes, "not measured")
