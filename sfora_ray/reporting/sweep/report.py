"""A sweep's report, made anew from its folder alone; the same folder gives the same bytes."""

from __future__ import annotations

from sfora_ray.files import write_text
from sfora_ray.pack.summary import recipe_in_words
from sfora_ray.reporting.blocks import Document
from sfora_ray.reporting.markdown import FIGURES, render_markdown
from sfora_ray.reporting.render_html import render_html
from sfora_ray.reporting.report import ReportPaths, write_figures
from sfora_ray.reporting.sweep.sections import figures_section, result_section, settings_section, trials_section
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.ranking import Ranking


def write_sweep_report(sweep: SweepFolder, found: Ranking) -> ReportPaths:
    """Write ``report/index.html``, ``report/report.md`` and ``report/figures/`` of a sweep folder."""
    document = make_document(sweep, found)
    figures = write_figures(document, sweep.report_path / FIGURES)
    html, markdown = sweep.report_path / "index.html", sweep.report_path / "report.md"
    write_text(html, render_html(document))
    write_text(markdown, render_markdown(document))
    return ReportPaths(html, markdown, figures)


def make_document(sweep: SweepFolder, found: Ranking) -> Document:
    """Return the report as records, before any renderer has seen it."""
    manifest = sweep.manifest()
    pack = manifest.config.pack
    sections = (
        result_section(sweep, found),
        figures_section(manifest.config, found),
        trials_section(manifest.config, found),
        settings_section(manifest, found),
    )
    recipe = "" if pack.recipe.name == "plain" else f" + {recipe_in_words(pack.recipe)}"
    subtitle = f"{len(found.trials)} trials of {pack.loss.name}{recipe} on {pack.data.name}, sweep {found.sweep}"
    return Document(f"Sweep {manifest.name}", subtitle, sections)
