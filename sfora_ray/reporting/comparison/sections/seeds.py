"""Members against members over seeds: would other seeds show the same difference?"""

from __future__ import annotations

from collections.abc import Sequence

from sfora_ray.comparison.records import Comparison, SeedTest
from sfora_ray.reporting.blocks import Block, Column, Folded, Paragraph, Section, Table
from sfora_ray.reporting.comparison.wording import count, effect, ends, num_seeds, p_value, points, selection_stamp
from sfora_ray.reporting.wording import metric_order, metric_title, percent

FIRST_METRICS = ("recall_at_1", "map_at_r")

_DIFFERENCES = (
    Column("Pack"),
    Column("Metric"),
    Column("n"),
    Column("Baseline", numeric=True),
    Column("This pack", numeric=True),
    Column("Difference", numeric=True),
    Column("95 %", numeric=True),
    Column("p", numeric=True),
    Column("Holm p", numeric=True),
)
_SIZES = (
    Column("Pack"),
    Column("Metric"),
    Column("Effect size [95 %]", numeric=True),
    Column("Seeds to see it", numeric=True),
    Column("To see 1 point", numeric=True),
    Column("Least p", numeric=True),
    Column("p of t", numeric=True),
)

_PAIRED = (
    "Paired: the same seed makes one pair. The interval is Student's t of the mean difference; p counts, two-sided, "
    "the sign flips of the differences that give a mean at least as far from zero. Holm p is adjusted over all packs "
    "that were compared in this metric. n pairs cannot give a p below 2^(1-n), whatever they show: with few seeds, "
    "read the interval."
)
_UNPAIRED = (
    "Where n says unpaired, fewer than two seeds are shared: members are independent draws then, and interval and p "
    "are Welch's, which need far more seeds to see a difference."
)
_PLANNING = (
    "The effect size is the mean difference in standard deviations of the differences (d_z, with Hedges' correction). "
    "Numbers of seeds are those with which a paired t test sees such a difference with power 0.8. Least p is "
    "what n pairs can give; p of t is that of a paired t test, which takes differences to be normal."
)


def seeds_section(comparison: Comparison) -> Section:
    """Return the tests over seeds: Recall@1 and MAP@R at once, the other metrics folded away."""
    if not comparison.seeds:
        return Section("Over seeds", (Paragraph("Nothing was compared over seeds.", "note"),))
    first = [test for test in comparison.seeds if test.metric in FIRST_METRICS]
    blocks: list[Block] = [_differences(comparison, first), Paragraph(_PAIRED, "note")]
    if any(test.test == "welch" for test in comparison.seeds):
        blocks.append(Paragraph(_UNPAIRED, "warning"))
    blocks += [_sizes(first), Paragraph(_PLANNING, "note")]
    others = [test for test in comparison.seeds if test.metric not in FIRST_METRICS]
    if others:
        blocks.append(Folded("The other metrics", (_differences(comparison, others), _sizes(others))))
    return Section("Over seeds", tuple(blocks))


def _differences(comparison: Comparison, tests: Sequence[SeedTest]) -> Table:
    ordered = _ordered(tests)
    marked = frozenset(place for place, test in enumerate(ordered) if excludes_zero(test.difference.ci95))
    caption = (
        f"One member minus one member of {comparison.baseline.label}, in points of % "
        f"({selection_stamp(comparison.entries)}); in bold: the interval does not hold zero"
    )
    return Table(caption, _DIFFERENCES, tuple(_difference_row(test) for test in ordered), marked)


def _sizes(tests: Sequence[SeedTest]) -> Table:
    rows = tuple(_size_row(test) for test in _ordered(tests))
    return Table("How large the difference is, and what it takes to see it", _SIZES, rows)


def _ordered(tests: Sequence[SeedTest]) -> list[SeedTest]:
    order = metric_order({test.metric: None} for test in tests)
    return sorted(tests, key=lambda test: order.index(test.metric))


def excludes_zero(bounds: tuple[float, float] | None) -> bool:
    """Return whether an interval lies on one side of zero."""
    return bounds is not None and (bounds[0] > 0 or bounds[1] < 0)


def _difference_row(test: SeedTest) -> tuple[str, ...]:
    return (
        test.other,
        metric_title(test.metric),
        num_seeds(test),
        percent(test.baseline_spread.mean),
        percent(test.other_spread.mean),
        points(test.difference.mean),
        ends(test.difference.ci95),
        p_value(test.p_value),
        p_value(test.p_holm),
    )


def _size_row(test: SeedTest) -> tuple[str, ...]:
    return (
        test.other,
        metric_title(test.metric),
        effect(test),
        count(test.seeds_for_difference),
        count(test.seeds_for_point),
        p_value(test.p_smallest),
        p_value(test.p_t),
    )
