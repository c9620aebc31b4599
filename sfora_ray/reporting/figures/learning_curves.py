"""Loss and Recall@1 of every member, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sfora_ray.reporting.figures.style import DASHES, PAPER, SERIES, draw, say_empty

Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class MemberCurve:
    """What one member's curves are drawn from: ``(epoch, value)`` pairs and the selected epoch."""

    id: str
    loss: Points
    recall: Points
    selected_epoch: int | None


def draw_learning_curves(curves: Sequence[MemberCurve], *, split: str) -> str:
    """Draw loss above Recall@1 (of ``split``, per cent) over epochs; a ring marks the selected epoch."""

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        above.set_title("Training loss")
        above.set_ylabel("mean over the epoch")
        _panel(above, curves, lambda curve: curve.loss)
        below.set_title(f"Recall@1 on {split}")
        below.set_ylabel("per cent")
        below.set_xlabel("epoch (ring: the selected one)")
        _panel(below, curves, _recall_percent)
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        if above.get_legend_handles_labels()[0]:
            figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=min(len(curves), 6))

    return draw("learning_curves", 5.2, paint)


def _recall_percent(curve: MemberCurve) -> Points:
    return tuple((epoch, 100 * value) for epoch, value in curve.recall)


def _panel(axes: Axes, curves: Sequence[MemberCurve], points_of: Callable[[MemberCurve], Points]) -> None:
    for place, curve in enumerate(curves):
        points = points_of(curve)
        if points:
            _line(axes, curve, points, place)
    if not axes.lines:
        say_empty(axes, "no epoch was recorded")


def _line(axes: Axes, curve: MemberCurve, points: Points, place: int) -> None:
    colour = SERIES[place % len(SERIES)]
    dashes = DASHES[(place // len(SERIES)) % len(DASHES)]
    epochs, values = zip(*points, strict=True)
    # A line of one point would be invisible.
    marker = "o" if len(points) == 1 else ""
    axes.plot(epochs, values, color=colour, linestyle=dashes, label=curve.id, marker=marker, markersize=3.5)
    for epoch, value in (point for point in points if point[0] == curve.selected_epoch):
        axes.plot(
            epoch,
            value,
            "o",
            markersize=7,
            markerfacecolor=PAPER,
            markeredgecolor=colour,
            markeredgewidth=1.8,
        )
