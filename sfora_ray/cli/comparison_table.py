"""What a comparison came to, on the terminal: never wider than 100 columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfora_ray.comparison.records import CONCAT_SYSTEM, Comparison, Entry, QueryTest, SeedTest, SizePoint
from sfora_ray.pack.summary import FoldFacts
from sfora_ray.reporting.comparison.shipped import leading_queries, shipped
from sfora_ray.reporting.comparison.wording import count, ends, num_seeds, p_value, points, system
from sfora_ray.reporting.wording import interval, metric_title, percent

_WIDEST = 100
_SEED_METRICS = ("recall_at_1", "map_at_r")
_NAME_WIDTH = 29
_DIGITS = 8


def print_comparison(console: Console, comparison: Comparison, report: Path) -> None:
    """Print what must be said first, then the packs, the tests over seeds, over queries and by size."""
    for label in comparison.labels:
        _say(console, label, "yellow")
    baseline = comparison.baseline.label
    _print(console, "\nPacks, Recall@1 in %; the first is the baseline", _packs(comparison))
    seeds = [test for metric in _SEED_METRICS for test in comparison.seeds if test.metric == metric]
    if seeds:
        _print(console, f"\nOne member minus one of {baseline}, over seeds, in points of %", _seeds(seeds))
    asked = leading_queries(comparison)
    if asked:
        over = f"over {asked[0].num_queries:,} queries of {asked[0].num_classes:,} classes"
        _print(console, f"\nMinus the same of {baseline}, {over}, in points of %", _queries(asked))
        rest = len(comparison.queries) - len(asked)
        if rest:
            _say(console, f"{rest} tests of other folds are in the report", "dim")
    sizes = [point for point in comparison.sizes if point.metric == "recall_at_1"]
    if sizes:
        _print(console, f"\nRecall@1 minus that of {baseline} by pack size, same seeds, in points of %", _sizes(sizes))
    for omitted in comparison.omitted:
        _say(console, f"not compared: {omitted}", "dim")
    _say(console, _EXPLANATION, "dim")
    console.print(f"report  {report}", soft_wrap=True, highlight=False, markup=False)


_EXPLANATION = (
    "95 %: over seeds, Student's t of the paired difference; over queries, bootstrap over classes; by size, jackknife "
    "over seeds. p: sign flips, of classes over queries; n seeds give none below 2^(1-n). Holm: over all packs of one "
    "metric. d: difference in standard deviations of the differences. needed: seeds that a paired t test needs to see "
    "the difference with power 0.8."
)


def _say(console: Console, text: str, style: str) -> None:
    console.print(Text(text, style=style), width=min(console.width, _WIDEST), highlight=False)


def _print(console: Console, title: str, table: Table) -> None:
    _say(console, title, "bold")
    console.print(table, width=min(console.width, _WIDEST))


def _table(columns: Sequence[str], words: int) -> Table:
    """Return an empty table of which the first ``words`` columns hold words; long names are broken, never cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for place, column in enumerate(columns):
        named = place == 0
        table.add_column(
            column,
            justify="left" if place < words else "right",
            no_wrap=not named,
            overflow="fold",
            max_width=_NAME_WIDTH if named else None,
        )
    return table


def _row(table: Table, *cells: str) -> None:
    # As text: a bracket in a name is no markup.
    table.add_row(*(Text(cell) for cell in cells))


def _packs(comparison: Comparison) -> Table:
    columns = ("", "n", "dim", "selection", "weights", "single [95 %]", "concat", "ships", "R@1")
    table = _table(columns, 1)
    for entry in comparison.entries:
        _row(table, *_pack_cells(entry))
    return table


def _pack_cells(entry: Entry) -> tuple[str, ...]:
    single, ships = entry.single.get("recall_at_1"), shipped(entry)
    missing = f"/{entry.facts.num_planned}" if entry.facts.num_members != entry.facts.num_planned else ""
    return (
        entry.label,
        f"{entry.facts.num_members}{missing}",
        str(entry.facts.dim),
        entry.facts.selection,
        _weights(entry.facts.weights),
        "" if single is None else f"{percent(single.mean)} {interval(single.ci95)}",
        _recall(next((fold for fold in entry.folds if fold.name == CONCAT_SYSTEM), None)),
        "none" if ships is None else ships.name,
        _recall(ships),
    )


def _weights(weights: str) -> str:
    """Return the beginning of the digest of start weights; those without one by their name."""
    name, _, digest = weights.partition(" sha256:")
    return digest[:_DIGITS] or name


def _recall(fold: FoldFacts | None) -> str:
    return "" if fold is None else percent(fold.metrics.get("recall_at_1"))


def _seeds(tests: Sequence[SeedTest]) -> Table:
    columns = ("", "metric", "n", "difference", "95 %", "p", "Holm", "d", "needed")
    table = _table(columns, 2)
    for test in tests:
        d_z = "" if test.effect is None else f"{test.effect.d_z:+.2f}"
        _row(
            table,
            test.other,
            metric_title(test.metric),
            num_seeds(test),
            points(test.difference.mean),
            ends(test.difference.ci95),
            p_value(test.p_value),
            p_value(test.p_holm),
            d_z,
            count(test.seeds_for_difference),
        )
    return table


def _queries(tests: Sequence[QueryTest]) -> Table:
    columns = ("", "compared", "dim", "metric", "difference", "95 %", "p", "Holm")
    table = _table(columns, 2)
    for test in tests:
        _row(
            table,
            test.other,
            system(test),
            str(test.dim),
            metric_title(test.metric),
            points(test.difference),
            ends(test.ci95),
            p_value(test.p_value),
            p_value(test.p_holm),
        )
    return table


def _sizes(shown: Sequence[SizePoint]) -> Table:
    columns = ("", "members", "dim", "baseline", "this pack", "difference", "95 %")
    table = _table(columns, 1)
    for point in shown:
        _row(
            table,
            point.other,
            str(point.size),
            str(point.dim),
            percent(point.baseline_mean),
            percent(point.other_mean),
            points(point.difference),
            ends(point.ci95),
        )
    return table
