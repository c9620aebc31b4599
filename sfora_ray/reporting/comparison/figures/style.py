"""What the figures of a comparison share: one colour and marker a pack, and the line that says how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sfora_ray.reporting.figures.style import DASHES, MUTED, PAPER, SERIES

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_WIDTH = 0.5
"""Of the room between two neighbouring sizes, what the bars of all packs may take together."""
_LEGEND_CHARACTERS = 84
_ON_TEST = "selection: test"


@dataclass(frozen=True)
class Look:
    """How a pack is drawn, in every figure alike."""

    colour: str
    marker: str
    dashes: Any

    @classmethod
    def of(cls, place: int) -> Look:
        """Return the look of the pack at this place; packs beyond the sixth differ by their dashes."""
        turn = (place // len(SERIES)) % len(DASHES)
        return cls(SERIES[place % len(SERIES)], _MARKERS[place % len(_MARKERS)], DASHES[turn])


def offsets(count: int, width: float = _WIDTH) -> list[float]:
    """Return where ``count`` marks stand around one place so that none covers another."""
    step = width / max(count, 3)
    return [step * (place - (count - 1) / 2) for place in range(count)]


def add_legend(figure: Figure, axes: Axes) -> None:
    """Write the names of what ``axes`` shows below the figure, as many in a row as their lengths allow."""
    handles, names = axes.get_legend_handles_labels()
    if names:
        columns = max(1, min(len(names), _LEGEND_CHARACTERS // (max(len(name) for name in names) + 6)))
        figure.legend(handles, names, loc="outside lower center", ncols=columns)


def add_stamp(figure: Figure, lines: Sequence[str]) -> None:
    """Write n, interval and selection into the figure itself, for figures are copied without their captions."""
    # At the left edge of a legend-free row of its own: constrained layout keeps it clear of axes and legend.
    on_test = any(_ON_TEST in line for line in lines)
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=7.5, color=SERIES[1] if on_test else MUTED)


def zero_line(axes: Axes, *, vertical: bool) -> None:
    """Draw where two packs are equal."""
    line = axes.axvline if vertical else axes.axhline
    line(0, color=MUTED, linewidth=0.9, linestyle=(0, (3, 2)), zorder=1)


def point_style(look: Look) -> dict[str, Any]:
    """Return how a mean with error bars is drawn."""
    return {
        "color": look.colour,
        "marker": look.marker,
        "markersize": 5.5,
        "markeredgecolor": PAPER,
        "markeredgewidth": 0.8,
        "elinewidth": 1.1,
        "capsize": 2.5,
    }


def bars(means: Sequence[float], bounds: Sequence[tuple[float, float] | None]) -> list[list[float]]:
    """Return the lengths below and above each mean, ``(2, N)``, in per cent; zero where there is no interval."""
    below = [0.0 if ends is None else 100 * max(mean - ends[0], 0.0) for mean, ends in zip(means, bounds, strict=True)]
    above = [0.0 if ends is None else 100 * max(ends[1] - mean, 0.0) for mean, ends in zip(means, bounds, strict=True)]
    return [below, above]
