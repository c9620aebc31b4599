"""The same queries asked of both packs: would other test classes show the same difference?"""

from __future__ import annotations

from collections.abc import Sequence

from sfora_ray.comparison.records import Comparison, QueryTest
from sfora_ray.reporting.blocks import Block, Column, Folded, Paragraph, Section, Table
from sfora_ray.reporting.comparison.sections.seeds import excludes_zero
from sfora_ray.reporting.comparison.shipped import leading_queries
from sfora_ray.reporting.comparison.wording import ends, p_value, points, selection_stamp, system
from sfora_ray.reporting.wording import metric_title, percent, whole

_COLUMNS = (
    Column("Pack"),
    Column("Compared"),
    Column("Dimensions", numeric=True),
    Column("Metric"),
    Column("Baseline", numeric=True),
    Column("This pack", numeric=True),
    Column("Difference", numeric=True),
    Column("95 %", numeric=True),
    Column("p", numeric=True),
    Column("Holm p", numeric=True),
)

_EXPLANATION = (
    "Both sides have as many members and are equally wide. Queries of a class rise and fall together, so whole "
    "classes are drawn again for the interval and flipped together for p. This speaks of other classes with these very "
    "members: a difference that is sure here may still be one of the seeds. Holm p is adjusted over all packs that "
    "were compared in this metric and system."
)
_MANY = (
    "Of so many folds one will differ by chance: Holm p is adjusted over packs, not over folds. Choose the fold first, "
    "as the configuration does, then read its row."
)


def queries_section(comparison: Comparison) -> Section:
    """Return the tests over queries."""
    if not comparison.queries:
        return Section("Over queries", (Paragraph("Nothing was compared over queries.", "note"),))
    first = leading_queries(comparison)
    blocks: list[Block] = [_table(comparison, first)] if first else []
    blocks.append(Paragraph(_EXPLANATION, "note"))
    others = [test for test in comparison.queries if test not in first]
    if others:
        blocks.append(Folded("The other folds", (Paragraph(_MANY, "note"), _table(comparison, others))))
    return Section("Over queries", tuple(blocks))


def _table(comparison: Comparison, tests: Sequence[QueryTest]) -> Table:
    marked = frozenset(place for place, test in enumerate(tests) if excludes_zero(test.ci95))
    caption = (
        f"Minus the same of {comparison.baseline.label}, in points of %, n = {whole(tests[0].num_queries)} queries of "
        f"{whole(tests[0].num_classes)} classes ({selection_stamp(comparison.entries)}); in bold: the interval does "
        "not hold zero"
    )
    return Table(caption, _COLUMNS, tuple(_row(test) for test in tests), marked)


def _row(test: QueryTest) -> tuple[str, ...]:
    return (
        test.other,
        system(test),
        str(test.dim),
        metric_title(test.metric),
        percent(test.baseline_mean),
        percent(test.other_mean),
        points(test.difference),
        ends(test.ci95),
        p_value(test.p_value),
        p_value(test.p_holm),
    )
