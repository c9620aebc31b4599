"""A comparison's report: HTML, Markdown, figures and the record itself; the same record gives the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfora_ray.comparison.records import Comparison
from sfora_ray.files import write_json, write_text
from sfora_ray.reporting.blocks import Document
from sfora_ray.reporting.comparison.sections.folds import folds_section
from sfora_ray.reporting.comparison.sections.learning import learning_section
from sfora_ray.reporting.comparison.sections.packs import packs_section
from sfora_ray.reporting.comparison.sections.queries import queries_section
from sfora_ray.reporting.comparison.sections.result import result_section
from sfora_ray.reporting.comparison.sections.seeds import seeds_section
from sfora_ray.reporting.comparison.sections.sizes import sizes_section
from sfora_ray.reporting.comparison.wording import members_stamp, selection_stamp, title
from sfora_ray.reporting.markdown import FIGURES, render_markdown
from sfora_ray.reporting.render_html import render_html
from sfora_ray.reporting.report import write_figures


@dataclass(frozen=True)
class ComparisonPaths:
    """Where a comparison was written.

    Attributes:
        html: the whole report in one file.
        markdown: the same as Markdown.
        record: the comparison as JSON.
        figures: the figures that the Markdown shows.
    """

    html: Path
    markdown: Path
    record: Path
    figures: tuple[Path, ...]

    def all(self) -> tuple[Path, ...]:
        """Return every file."""
        return (self.html, self.markdown, self.record, *self.figures)


def write_comparison(comparison: Comparison, folder: Path) -> ComparisonPaths:
    """Write ``index.html``, ``comparison.md``, ``comparison.json`` and ``figures/`` into a folder, each file whole."""
    document = comparison_document(comparison)
    figures = write_figures(document, folder / FIGURES)
    paths = ComparisonPaths(folder / "index.html", folder / "comparison.md", folder / "comparison.json", figures)
    write_text(paths.markdown, render_markdown(document))
    write_text(paths.html, render_html(document))
    write_json(paths.record, comparison.model_dump(mode="json"))
    return paths


def comparison_document(comparison: Comparison) -> Document:
    """Return the report as records, before any renderer has seen it."""
    facts = comparison.baseline.facts
    sections = (
        result_section(comparison),
        packs_section(comparison),
        seeds_section(comparison),
        queries_section(comparison),
        sizes_section(comparison),
        learning_section(comparison),
        folds_section(comparison),
    )
    subtitle = (
        f"On {facts.dataset}; baseline {comparison.baseline.label}; {members_stamp(comparison.entries)}; "
        f"{selection_stamp(comparison.entries)}"
    )
    return Document(f"Comparison: {title(comparison)}", subtitle, sections)
