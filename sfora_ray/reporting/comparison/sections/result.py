"""What came out: what must be said of every number, each pair in a sentence, all differences in one figure."""

from __future__ import annotations

from sfora_ray.comparison.records import CONCAT_SYSTEM, Comparison, Entry, QueryTest, SeedTest
from sfora_ray.reporting.blocks import Block, Box, Bullets, Drawing, Paragraph, Section
from sfora_ray.reporting.comparison.figures import draw_forest
from sfora_ray.reporting.comparison.wording import difference, num_seeds, p_equals, selection_sentence
from sfora_ray.reporting.wording import whole

_METRIC = "recall_at_1"


def result_section(comparison: Comparison) -> Section:
    """Return the section that the report opens with."""
    blocks: list[Block] = [Paragraph(label, "warning") for label in comparison.labels]
    blocks += [Paragraph(sentence(comparison, entry), "lead") for entry in comparison.others]
    blocks.append(_forest(comparison))
    if comparison.omitted:
        blocks.append(Box("Not compared", (Bullets(comparison.omitted),)))
    return Section("Result", tuple(blocks))


def sentence(comparison: Comparison, entry: Entry) -> str:
    """Return what may be said about one pack against the baseline, over seeds and over classes."""
    seeds = next((test for test in comparison.seeds if _is_of(test, entry)), None)
    whole_packs = next((test for test in comparison.queries if _is_of(test, entry) and _is_concat(test)), None)
    parts = [_over_seeds(seeds)] if seeds is not None else []
    parts += [_over_classes(whole_packs)] if whole_packs is not None else []
    said = "; ".join(parts) if parts else "nothing could be compared"
    stamp = selection_sentence((comparison.baseline, entry))
    return f"{entry.label} against {comparison.baseline.label}, Recall@1: {said}. {stamp}"


def verdict(bounds: tuple[float, float] | None) -> str:
    """Return what an interval of the difference says."""
    if bounds is None:
        return "without an interval, which says nothing"
    if bounds[0] > 0:
        return "above zero"
    return "below zero" if bounds[1] < 0 else "not told apart from zero"


def _is_of(test: SeedTest | QueryTest, entry: Entry) -> bool:
    return test.other == entry.label and test.metric == _METRIC


def _is_concat(test: QueryTest) -> bool:
    return test.system == CONCAT_SYSTEM


def _over_seeds(test: SeedTest) -> str:
    change = difference(test.difference.mean, test.difference.ci95)
    return (
        f"one member {change} points over seeds, {verdict(test.difference.ci95)} "
        f"(n = {num_seeds(test)}, Holm {p_equals(test.p_holm)})"
    )


def _over_classes(test: QueryTest) -> str:
    change = difference(test.difference, test.ci95)
    return (
        f"the packs of {test.size} {change} points over classes, {verdict(test.ci95)} "
        f"(n = {whole(test.num_queries)} queries, Holm {p_equals(test.p_holm)})"
    )


def _forest(comparison: Comparison) -> Drawing:
    return Drawing(
        "comparison_forest",
        draw_forest(comparison),
        f"Differences of Recall@1 to {comparison.baseline.label} with their 95 % intervals; the tables below have the "
        "same numbers",
        "Differences of Recall@1 in points of per cent. Over seeds: 95 % t interval of the paired difference, n seeds; "
        "it speaks of other seeds on these classes. Over classes: 95 % bootstrap interval, n queries; it speaks of "
        f"other classes with these members. {selection_sentence(comparison.entries)}",
    )
