"""The packs that are compared: what each is, and what it reached by itself."""

from __future__ import annotations

from sfora_ray.comparison.records import CONCAT_SYSTEM, Comparison, Entry
from sfora_ray.pack.summary import FoldFacts
from sfora_ray.reporting.blocks import Bullets, Column, Paragraph, Section, Table
from sfora_ray.reporting.comparison.shipped import shipped
from sfora_ray.reporting.comparison.wording import members_stamp, selection_stamp
from sfora_ray.reporting.wording import ABSENT, interval, metric_title, percent, spread, whole

_SHORT_DIGESTS = 12


def packs_section(comparison: Comparison) -> Section:
    """Return the table of all packs and where each was read."""
    facts = comparison.baseline.facts
    data = (
        f"All packs are scored on the same images: {whole(facts.num_queries)} queries of {whole(facts.test_classes)} "
        f"classes of {facts.dataset} (digest {facts.dataset_digest}). A single member stands beside single members and "
        "a concatenation beside concatenations; what a pack reached is written beside how many members it has."
    )
    sources = tuple(f"{entry.label}: {entry.source}" for entry in comparison.entries)
    return Section("Packs", (Paragraph(data), _what(comparison), _reached(comparison), Bullets(sources)))


def short_weights(weights: str) -> str:
    """Return start weights as a file name and the beginning of its digest."""
    return "; ".join(_short(part) for part in weights.split("; "))


def _short(weights: str) -> str:
    name, _, digest = weights.partition(" sha256:")
    whose = "teacher " if name.startswith("teacher ") else ""
    name = whose + (name.rsplit("/", 1)[-1] or "none")
    return f"{name} {digest[:_SHORT_DIGESTS]}" if digest else name


def _what(comparison: Comparison) -> Table:
    columns = (
        Column("Pack"),
        Column("Members", numeric=True),
        Column("Dim", numeric=True),
        Column("Concat dim", numeric=True),
        Column("Method"),
        Column("Network"),
        Column("Start weights"),
        Column("Epochs", numeric=True),
        Column("Selection"),
    )
    rows = tuple(_what_row(entry) for entry in comparison.entries)
    return Table("What is compared; the first pack is the baseline", columns, rows, frozenset({0}))


def _what_row(entry: Entry) -> tuple[str, ...]:
    facts = entry.facts
    missing = f" of {facts.num_planned}" if facts.num_members != facts.num_planned else ""
    return (
        entry.label,
        f"{facts.num_members}{missing}",
        str(facts.dim),
        str(entry.concat_dim),
        facts.method,
        facts.backbone,
        short_weights(facts.weights),
        str(facts.epochs),
        selection_stamp([entry]).removeprefix("selection: "),
    )


def _reached(comparison: Comparison) -> Table:
    columns = (
        Column("Pack"),
        Column("One member, mean ± std [95 %]", numeric=True),
        Column("Concat [95 %]", numeric=True),
        Column("Fold that ships"),
        Column("Its R@1 [95 %]", numeric=True),
    )
    rows = tuple(_reached_row(entry) for entry in comparison.entries)
    caption = (
        f"{metric_title('recall_at_1')} in %: one member with Student's t interval over seeds, concat and fold with a "
        f"bootstrap over test classes ({members_stamp(comparison.entries)}; {selection_stamp(comparison.entries)})"
    )
    return Table(caption, columns, rows, frozenset({0}))


def _reached_row(entry: Entry) -> tuple[str, ...]:
    single = entry.single.get("recall_at_1")
    concat = next((fold for fold in entry.folds if fold.name == CONCAT_SYSTEM), None)
    ships = shipped(entry)
    return (
        entry.label,
        ABSENT if single is None else spread(single),
        _recall(concat),
        ABSENT if ships is None else f"{ships.name}, {ships.dim}-d",
        _recall(ships),
    )


def _recall(fold: FoldFacts | None) -> str:
    if fold is None:
        return ABSENT
    recall = percent(fold.metrics.get("recall_at_1"))
    return recall if fold.ci95 is None else f"{recall} {interval(fold.ci95)}"
