"""What a report is made of: a list of sections of plain records, which each renderer turns into its own text.

Strings in these records are plain text. Escaping is the renderers' work alone, so no section can forget it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Tone: TypeAlias = Literal["plain", "lead", "note", "warning"]
Verdict: TypeAlias = Literal["query", "right", "wrong"]


@dataclass(frozen=True)
class Paragraph:
    """A run of plain text."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Bullets:
    """An unordered list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One number of the headline: what it is, its value, and what must be known about it."""

    label: str
    value: str
    detail: str


@dataclass(frozen=True)
class Steps:
    """The headline's numbers, each the continuation of the one before."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Column:
    """A table column; numbers are set to the right."""

    title: str
    numeric: bool = False


@dataclass(frozen=True)
class Table:
    """A table of plain text cells; ``marked`` rows are set in bold type."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), self.caption


@dataclass(frozen=True)
class Drawing:
    """A figure: an SVG document, the name of its file, what it shows in words, and its caption."""

    name: str
    svg: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Tile:
    """One small picture of a sheet."""

    file_name: str
    content: bytes
    alt: str
    caption: str
    verdict: Verdict

    @property
    def media_type(self) -> str:
        """Return the MIME type that the file name's ending stands for."""
        return "image/png" if self.file_name.endswith(".png") else "image/jpeg"


@dataclass(frozen=True)
class Sheet:
    """Rows of pictures, each a query and its nearest neighbours in order."""

    caption: str
    rows: tuple[tuple[Tile, ...], ...]


@dataclass(frozen=True)
class Box:
    """Blocks set apart in a frame."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Folded:
    """Blocks that are closed until the reader opens them."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Paragraph | Bullets | Steps | Table | Drawing | Sheet | Box | Folded


@dataclass(frozen=True)
class Section:
    """A titled part of the report."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """The whole report."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]


def walk(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return all blocks, those inside boxes and folded parts too, in reading order."""
    found: list[Block] = []
    for block in blocks:
        found.append(block)
        if isinstance(block, Box | Folded):
            found.extend(walk(block.blocks))
    return tuple(found)
