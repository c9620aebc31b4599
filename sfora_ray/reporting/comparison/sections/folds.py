"""The folds of all packs side by side."""

from __future__ import annotations

from sfora_ray.comparison.records import Comparison
from sfora_ray.reporting.blocks import Column, Drawing, Paragraph, Section, Table
from sfora_ray.reporting.comparison.figures import draw_folds
from sfora_ray.reporting.comparison.figures.folds import fold_rows, row_name
from sfora_ray.reporting.comparison.wording import members_stamp, selection_sentence, selection_stamp
from sfora_ray.reporting.wording import ABSENT, percent


def folds_section(comparison: Comparison) -> Section:
    """Return the figure and the table of what each fold reaches and keeps."""
    if not fold_rows(comparison.entries):
        return Section("Folds", (Paragraph("No pack was folded.", "note"),))
    drawing = Drawing(
        "comparison_folds",
        draw_folds(comparison.entries),
        "Recall@1 and retained share of every fold, one mark a pack; the table below has the same numbers",
        "Left: bars are 95 % bootstrap intervals over test classes, of each one pack "
        f"({members_stamp(comparison.entries)}). Right: a fold's Recall@1 over that of its own pack's concatenation; "
        f"a high share of a poor pack is still poor. {selection_sentence(comparison.entries)}",
    )
    return Section("Folds", (drawing, _table(comparison)))


def _table(comparison: Comparison) -> Table:
    columns = (Column("Fold"), *(Column(entry.label, numeric=True) for entry in comparison.entries))
    rows = tuple((name, *_cells(comparison, name)) for name in fold_rows(comparison.entries))
    stamps = f"{members_stamp(comparison.entries)}; {selection_stamp(comparison.entries)}"
    return Table(f"R@1 in %, in brackets the retained share of the concatenation ({stamps})", columns, rows)


def _cells(comparison: Comparison, name: str) -> tuple[str, ...]:
    cells = []
    for entry in comparison.entries:
        fold = next((fold for fold in entry.folds if row_name(fold) == name), None)
        recall = None if fold is None else fold.metrics.get("recall_at_1")
        cells.append(ABSENT if fold is None else f"{percent(recall)} ({percent(fold.retained)})")
    return tuple(cells)
