"""Every difference of Recall@1 with its interval, one under the other: a forest plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sfora_ray.comparison.records import Comparison
from sfora_ray.reporting.comparison.figures.style import Look, add_stamp, bars, point_style, zero_line
from sfora_ray.reporting.comparison.shipped import leading_queries
from sfora_ray.reporting.comparison.wording import difference, num_seeds, selection_stamp, system
from sfora_ray.reporting.figures.style import INK, MUTED, draw, say_empty
from sfora_ray.reporting.wording import whole

METRIC = "recall_at_1"


@dataclass(frozen=True)
class ForestRow:
    """One difference: what was compared, over what, and how sure it is."""

    other: str
    text: str
    difference: float
    ci95: tuple[float, float] | None


def draw_forest(comparison: Comparison) -> str:
    """Draw all differences of Recall@1 to the baseline (points of per cent), pack by pack."""
    rows = forest_rows(comparison)
    groups = [entry.label for entry in comparison.others if any(row.other == entry.label for row in rows)]
    height = 1.25 + 0.235 * (len(rows) + 1.3 * len(groups))

    def paint(figure: Figure) -> None:
        add_stamp(figure, ["Over seeds: 95 % t interval, n seeds. Over classes: 95 % bootstrap interval, n queries.",
                           selection_stamp(comparison.entries)])  # fmt: skip
        axes = figure.subplots()
        axes.set_title(f"Recall@1 minus that of {comparison.baseline.label}")
        axes.set_xlabel("points of per cent; right of the line: better than the baseline")
        if rows:
            _paint_rows(axes, comparison, rows)
        else:
            say_empty(axes, "nothing could be compared")

    return draw("comparison_forest", max(height, 2.2), paint)


def forest_rows(comparison: Comparison) -> tuple[ForestRow, ...]:
    """Return the differences of Recall@1 that a test stands behind, pack by pack: over seeds, then over classes."""
    rows = []
    for entry in comparison.others:
        for test in comparison.seeds:
            if test.other == entry.label and test.metric == METRIC:
                text = f"one member, over seeds (n = {num_seeds(test)})"
                rows.append(ForestRow(entry.label, text, test.difference.mean, test.difference.ci95))
        for asked in leading_queries(comparison):
            if asked.other == entry.label and asked.metric == METRIC:
                text = f"{system(asked)}, over classes (n = {whole(asked.num_queries)})"
                rows.append(ForestRow(entry.label, text, asked.difference, asked.ci95))
    return tuple(rows)


def _paint_rows(axes: Axes, comparison: Comparison, rows: Sequence[ForestRow]) -> None:
    names: list[tuple[float, str, bool]] = []
    height = 0.0
    for place, entry in enumerate(comparison.others, start=1):
        group = [row for row in rows if row.other == entry.label]
        if not group:
            continue
        names.append((height, entry.label, True))
        for row in group:
            height += 1
            names.append((height, row.text, False))
            _paint_row(axes, row, height, Look.of(place))
        height += 1.3
    _name_rows(axes, names)
    axes.set_ylim(height - 0.5, -0.7)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    zero_line(axes, vertical=True)


def _paint_row(axes: Axes, row: ForestRow, height: float, look: Look) -> None:
    style = point_style(look) | {"linestyle": "none"}
    axes.errorbar([100 * row.difference], [height], xerr=bars([row.difference], [row.ci95]), **style)
    axes.annotate(
        difference(row.difference, row.ci95),
        (1.01, height),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize=8,
        color=INK,
    )


def _name_rows(axes: Axes, names: Sequence[tuple[float, str, bool]]) -> None:
    axes.set_yticks([height for height, _, _ in names], [name for _, name, _ in names])
    for label, (_, _, heads) in zip(axes.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if heads else "normal")
        label.set_color(INK if heads else MUTED)
