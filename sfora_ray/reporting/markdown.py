"""The same report as Markdown (GitHub's dialect), with its figures and pictures as files beside it."""

from __future__ import annotations

import re

from sfora_ray.reporting.blocks import (
    Block,
    Box,
    Bullets,
    Document,
    Drawing,
    Folded,
    Paragraph,
    Section,
    Sheet,
    Steps,
    Table,
)

FIGURES = "figures"

_MARKS = {"query": "query", "right": "✓", "wrong": "✗"}
_PREFIXES = {"plain": "", "lead": "", "note": "> ", "warning": "> **Note.** "}


def render_markdown(document: Document) -> str:
    """Return the whole report; links lead to ``figures/``."""
    parts = [f"# {escape(document.title)}", escape(document.subtitle)]
    parts.extend(_section(section) for section in document.sections)
    return "\n\n".join(parts) + "\n"


def escape(plain: str) -> str:
    """Make plain text mean itself in Markdown, in a table cell too: one line, no markup, no HTML."""
    line = " ".join(plain.split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#$!])", r"\\\1", line)


def _section(section: Section) -> str:
    return "\n\n".join([f"## {escape(section.title)}", *(_block(block) for block in section.blocks)])


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return _PREFIXES[block.tone] + escape(block.text)
        case Bullets():
            return "\n".join(f"- {escape(item)}" for item in block.items)
        case Steps():
            return "\n".join(
                f"{place}. {escape(step.label)}: **{escape(step.value)}** ({escape(step.detail)})"
                for place, step in enumerate(block.steps, 1)
            )
        case Table():
            return _table(block)
        case Drawing():
            return f"![{escape(block.alt)}]({FIGURES}/{block.name}.svg)\n\n*{escape(block.caption)}*"
        case Sheet():
            return _sheet(block)
        case Box():
            return "\n\n".join([f"### {escape(block.title)}", *(_block(part) for part in block.blocks)])
        case Folded():
            # Blank lines around the inner blocks make renderers read them as Markdown again.
            inner = "\n\n".join(_block(part) for part in block.blocks)
            return f"<details><summary>{escape(block.title)}</summary>\n\n{inner}\n\n</details>"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(block: Table) -> str:
    rules = tuple("---:" if column.numeric else "---" for column in block.columns)
    lines = [_row(tuple(escape(column.title) for column in block.columns)), _row(rules)]
    for place, row in enumerate(block.rows):
        bold = "**" if place in block.marked else ""
        lines.append(_row(tuple(f"{bold}{escape(cell)}{bold}" if cell else "" for cell in row)))
    return "\n".join([f"*{escape(block.caption)}*", "", *lines])


def _sheet(block: Sheet) -> str:
    width = max((len(row) for row in block.rows), default=0)
    heads = ("query", *(str(place) for place in range(1, width)))
    lines = [_row(heads), _row(("---",) * width)]
    for row in block.rows:
        cells = [
            f"![{escape(tile.alt)}]({FIGURES}/{tile.file_name})<br>{_MARKS[tile.verdict]} {escape(tile.caption)}"
            for tile in row
        ]
        lines.append(_row((*cells, *[""] * (width - len(row)))))
    return "\n".join([f"*{escape(block.caption)}*", "", *lines])
