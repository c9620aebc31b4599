"""What each fold keeps of the concatenation's Recall@1, against the width it folds to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from sfora_ray.pack.summary import FittedOn, FoldFacts
from sfora_ray.reporting.figures.labels import Anchor, place_labels
from sfora_ray.reporting.figures.style import MUTED, PAPER, SERIES, draw, say_empty

_LOOKS: dict[FittedOn, tuple[str, str, str]] = {
    "none": ("fitted on nothing", "o", SERIES[0]),
    "train": ("fitted on train (inductive)", "s", SERIES[2]),
    "test": ("fitted on test (transductive: upper bound)", "^", SERIES[1]),
}


def draw_fold_plane(folds: Sequence[FoldFacts]) -> str:
    """Draw retained Recall@1 (per cent of the concatenation's) over dimension, doubling from tick to tick."""

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_title("What a fold keeps of the concatenation's Recall@1")
        axes.set_ylabel("retained (per cent)")
        axes.set_xlabel("dimensions of the folded embedding (doubling scale)")
        if not folds:
            say_empty(axes, "no fold was made")
            return
        _scales(axes, folds)
        for fitted_on, (title, marker, colour) in _LOOKS.items():
            _group(axes, [fold for fold in folds if fold.fitted_on == fitted_on], title, marker, colour)
        figure.legend(loc="outside lower center", ncols=3, handletextpad=0.2, columnspacing=1.2)
        anchors = [Anchor(fold.name, fold.dim, 100 * fold.retained) for fold in folds]
        place_labels(figure, axes, anchors)

    return draw("folds", 4.9, paint)


def _scales(axes: Axes, folds: Sequence[FoldFacts]) -> None:
    dims = sorted({fold.dim for fold in folds})
    axes.set_xscale("log", base=2)
    axes.set_xticks(_spaced(dims))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    # Names are as wide as about a quarter of the panel: so much is left free on either side.
    room = 2 ** max(0.8, 0.25 * math.log2(dims[-1] / dims[0]))
    axes.set_xlim(dims[0] / room, dims[-1] * room)
    retained = [100 * fold.retained for fold in folds]
    height = max(max(retained) - min(retained), 1.0)
    axes.set_ylim(min(retained) - 0.18 * height, max(retained) + 0.18 * height)
    if min(retained) <= 100 <= axes.get_ylim()[1]:
        axes.axhline(100, color=MUTED, linewidth=0.9, linestyle=(0, (3, 2)), zorder=1)


def _spaced(dims: Sequence[int]) -> list[int]:
    """Leave out a tick within a quarter octave of the one before: their labels would touch."""
    kept: list[int] = []
    for dim in dims:
        if not kept or dim / kept[-1] >= 2**0.25:
            kept.append(dim)
    return kept


def _group(axes: Axes, folds: Sequence[FoldFacts], title: str, marker: str, colour: str) -> None:
    if folds:
        axes.scatter(
            [fold.dim for fold in folds],
            [100 * fold.retained for fold in folds],
            s=38,
            marker=marker,
            color=colour,
            edgecolors=PAPER,
            linewidths=0.9,
            label=title,
            zorder=3,
        )
