"""The folds: what each was fitted on, and what it keeps."""

from __future__ import annotations

from sfora_ray.pack.summary import SINGLE, FoldFacts, Summary, shipped_fold
from sfora_ray.reporting.blocks import Column, Drawing, Paragraph, Section, Table
from sfora_ray.reporting.figures import draw_fold_plane
from sfora_ray.reporting.wording import FITTED_ON_TITLES, SELECTION_STAMPS, interval, percent

_COLUMNS = (
    Column("Fold"),
    Column("Dimensions", numeric=True),
    Column("Fitted on"),
    Column("Members", numeric=True),
    Column("R@1", numeric=True),
    Column("95 % over classes", numeric=True),
    Column("MAP@R", numeric=True),
    Column("Retained", numeric=True),
)


def folds_section(summary: Summary) -> Section:
    """Return the figure and the table of all folds."""
    if not summary.folds:
        return Section("Folds", (Paragraph("No fold was made.", "note"),))
    drawing = Drawing(
        "folds",
        draw_fold_plane(summary.folds),
        "Retained Recall@1 of each fold against its dimension; the table below has the same numbers",
        "Retained: a fold's Recall@1 over that of the concatenation. Triangles saw the test images "
        "while they were "
        "fitted: they are upper bounds.",
    )
    blocks = (drawing, _table(summary))
    if any(fold.name.startswith(SINGLE) for fold in summary.folds):
        note = f"Names that begin with {SINGLE} are means over members, each folded by itself."
        return Section("Folds", (*blocks, Paragraph(note, "note")))
    return Section("Folds", blocks)


def _table(summary: Summary) -> Table:
    best = shipped_fold(summary)
    marked = frozenset(place for place, fold in enumerate(summary.folds) if fold is best)
    stamp = SELECTION_STAMPS[summary.pack.selection]
    caption = f"All folds, in % ({stamp}); in bold: the fold that ships"
    return Table(caption, _COLUMNS, tuple(_row(fold) for fold in summary.folds), marked)


def _row(fold: FoldFacts) -> tuple[str, ...]:
    return (
        fold.name,
        str(fold.dim),
        FITTED_ON_TITLES[fold.fitted_on],
        str(fold.num_members),
        percent(fold.metrics.get("recall_at_1")),
        interval(fold.ci95),
        percent(fold.metrics.get("map_at_r")),
        percent(fold.retained),
    )
