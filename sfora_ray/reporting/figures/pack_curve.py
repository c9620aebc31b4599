"""How much each further member adds: retrieval by concatenations of 1 to M members."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sfora_ray.pack.summary import CurvePoint
from sfora_ray.reporting.figures.style import INK, PAPER, SERIES, draw, say_empty
from sfora_ray.reporting.wording import metric_title

_PANELS = (("recall_at_1", "o"), ("map_at_r", "s"))


def draw_pack_curve(points: Sequence[CurvePoint]) -> str:
    """Draw Recall@1 and MAP@R (per cent) over pack size, with the interval of each mean."""

    def paint(figure: Figure) -> None:
        for place, (axes, (metric, marker)) in enumerate(zip(figure.subplots(1, 2), _PANELS, strict=True)):
            axes.set_title(f"{metric_title(metric)} of the concatenation")
            axes.set_xlabel("members in the pack")
            shown = [point for point in points if metric in point.metrics]
            if shown:
                _panel(axes, shown, metric, marker, SERIES[place])
            else:
                say_empty(axes, "not measured")
        figure.axes[0].set_ylabel("per cent")

    return draw("pack_curve", 2.9, paint)


def _panel(axes: Axes, points: Sequence[CurvePoint], metric: str, marker: str, colour: str) -> None:
    sizes = [point.size for point in points]
    means = [100 * point.metrics[metric] for point in points]
    axes.errorbar(
        sizes,
        means,
        yerr=_error_bars(points, metric),
        color=colour,
        marker=marker,
        markersize=5.5,
        markeredgecolor=PAPER,
        markeredgewidth=0.8,
        elinewidth=1.1,
        capsize=3.5,
    )
    axes.annotate(
        f"{means[-1]:.1f}",
        (sizes[-1], means[-1]),
        xytext=(0, 8),
        textcoords="offset points",
        ha="center",
        color=INK,
        fontweight="bold",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(min(sizes) - 0.5, max(sizes) + 0.5)
    axes.margins(y=0.2)


def _error_bars(points: Sequence[CurvePoint], metric: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the bars below and above each mean, ``(2, N)``; zero where a size has no interval."""
    bars = np.zeros((2, len(points)))
    for place, point in enumerate(points):
        if point.ci95 is not None and metric in point.ci95:
            low, high = point.ci95[metric]
            mean = point.metrics[metric]
            bars[:, place] = 100 * max(mean - low, 0.0), 100 * max(high - mean, 0.0)
    return bars
