"""The folds of all packs side by side: what each reaches, and what it keeps of its pack's concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sfora_ray.comparison.records import Entry
from sfora_ray.pack.summary import FoldFacts
from sfora_ray.reporting.comparison.figures.style import Look, add_legend, add_stamp, bars, offsets, point_style
from sfora_ray.reporting.comparison.wording import members_stamp, selection_stamp
from sfora_ray.reporting.figures.style import MUTED, draw, say_empty

_BOUND = " (upper bound)"


def draw_folds(entries: Sequence[Entry]) -> str:
    """Draw Recall@1 and the retained share (per cent) of every fold, one row a fold and width, one mark a pack."""
    rows = fold_rows(entries)

    def paint(figure: Figure) -> None:
        add_stamp(figure, ["Bar: 95 % bootstrap interval over test classes of this one pack; " + members_stamp(entries),
                           selection_stamp(entries)])  # fmt: skip
        left, right = figure.subplots(1, 2, sharey=True)
        left.set_title("Recall@1 (%)")
        right.set_title("Retained of concat (%)")
        if not rows:
            say_empty(left, "no fold was made")
            return
        for axes in (left, right):
            _frame(axes, rows)
        _marks(left, right, entries, rows)
        right.axvline(100, color=MUTED, linewidth=0.9, linestyle=(0, (3, 2)), zorder=1)
        add_legend(figure, left)

    return draw("comparison_folds", 1.6 + max(len(rows), 2) * (0.24 + 0.1 * len(entries)), paint)


def fold_rows(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the names of all folds, as the packs list them; folds of other widths have rows of their own."""
    return tuple(dict.fromkeys(row_name(fold) for entry in entries for fold in entry.folds))


def row_name(fold: FoldFacts) -> str:
    """Return a fold's name with its width; what saw the test images is called an upper bound."""
    return f"{fold.name}, {fold.dim}-d" + (_BOUND if fold.fitted_on == "test" else "")


def _frame(axes: Axes, rows: Sequence[str]) -> None:
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(True, axis="x")


def _marks(left: Axes, right: Axes, entries: Sequence[Entry], rows: Sequence[str]) -> None:
    for place, (entry, offset) in enumerate(zip(entries, offsets(len(entries), 0.7), strict=True)):
        folds = [fold for fold in entry.folds if "recall_at_1" in fold.metrics]
        if not folds:
            continue
        heights = [rows.index(row_name(fold)) + offset for fold in folds]
        recalls = [fold.metrics["recall_at_1"] for fold in folds]
        style = point_style(Look.of(place)) | {"linestyle": "none"}
        left.errorbar(
            [100 * recall for recall in recalls],
            heights,
            xerr=bars(recalls, [fold.ci95 for fold in folds]),
            label=entry.label,
            **style,
        )
        right.errorbar([100 * fold.retained for fold in folds], heights, **style)
