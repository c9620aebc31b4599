"""The same queries asked of both packs: would other test classes show the same difference?"""

from __future__ import annotations

from sfora_ray.comparison.records import Comparison, QueryTest
from sfora_ray.reporting.blocks import Column, Paragraph, Section, Table
from sfora_ray.reporting.comparison.sections.seeds import excludes_zero
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


def queries_section(comparison: Comparison) -> Section:
    """Return the tests over queries."""
    if not comparison.queries:
        return Section("Over queries", (Paragraph("Nothing was compared over queries.", "note"),))
    return Section("Over queries", (_table(comparison), Paragraph(_EXPLANATION, "note")))


def _table(comparison: Comparison) -> Table:
    tests = comparison.queries
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
