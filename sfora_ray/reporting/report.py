"""A pack's report, made anew from its run folder alone; the same folder gives the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfora_ray.files import write_bytes, write_text
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.reporting.blocks import Document, Drawing, Sheet, walk
from sfora_ray.reporting.markdown import FIGURES, render_markdown
from sfora_ray.reporting.render_html import render_html
from sfora_ray.reporting.sections.folds import folds_section
from sfora_ray.reporting.sections.headline import headline
from sfora_ray.reporting.sections.members import members_section
from sfora_ray.reporting.sections.pack_size import pack_size
from sfora_ray.reporting.sections.provenance import provenance
from sfora_ray.reporting.sections.settings import settings
from sfora_ray.reporting.sections.sheets import neighbours_section


@dataclass(frozen=True)
class ReportPaths:
    """Where a report was written.

    Attributes:
        html: the whole report in one file.
        markdown: the same as Markdown.
        figures: the figures and pictures that the Markdown shows.
    """

    html: Path
    markdown: Path
    figures: tuple[Path, ...]


def write_report(run: RunFolder, *, cache_dir: Path) -> ReportPaths:
    """Write ``report/index.html``, ``report/report.md`` and ``report/figures/`` of a run folder.

    Args:
        run: a pack that has its ``summary.json``.
        cache_dir: where prepared data are kept; the picture sheet reads its images through it.

    Raises:
        RunFolderError: there is no summary yet.
    """
    document = make_document(run, cache_dir=cache_dir)
    figures = write_figures(document, run.report_path / FIGURES)
    html, markdown = run.report_path / "index.html", run.report_path / "report.md"
    write_text(html, render_html(document))
    write_text(markdown, render_markdown(document))
    return ReportPaths(html, markdown, figures)


def make_document(run: RunFolder, *, cache_dir: Path) -> Document:
    """Return the report as records, before any renderer has seen it."""
    summary, manifest = run.summary(), run.manifest()
    pack = summary.pack
    sections = (
        headline(summary),
        provenance(summary),
        settings(summary, manifest),
        members_section(run, summary),
        pack_size(summary),
        folds_section(summary),
        neighbours_section(run, summary, cache_dir),
    )
    subtitle = f"{pack.num_members} × {pack.method} on {pack.dataset}, run {pack.name}-{pack.digest}"
    return Document(f"Pack {pack.name}", subtitle, sections)


def write_figures(document: Document, folder: Path) -> tuple[Path, ...]:
    """Write every file that the Markdown links to, and remove those of an earlier report."""
    content = _figure_files(document)
    for path in folder.glob("*") if folder.is_dir() else ():
        if path.name not in content:
            path.unlink()
    for name, data in content.items():
        write_bytes(folder / name, data)
    return tuple(folder / name for name in content)


def _figure_files(document: Document) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for block in walk(tuple(block for section in document.sections for block in section.blocks)):
        if isinstance(block, Drawing):
            files[f"{block.name}.svg"] = block.svg.encode("utf-8")
        elif isinstance(block, Sheet):
            files |= {tile.file_name: tile.content for row in block.rows for tile in row}
    return files
