"""The report as one HTML file that needs nothing beside it: style, figures and pictures are inside."""

from __future__ import annotations

import re
from importlib import resources

from sfora_ray.reporting.blocks import (
    Block,
    Box,
    Bullets,
    Column,
    Document,
    Drawing,
    Folded,
    Paragraph,
    Section,
    Sheet,
    Steps,
    Table,
    Tile,
)
from sfora_ray.reporting.html import Markup, data_uri, element, text
from sfora_ray.reporting.inline_svg import inline_svg

_MARKS = {"query": "query", "right": "✓ right", "wrong": "✗ wrong"}

# Should a name ever slip through unescaped, the page still loads nothing and runs nothing.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


_SHORT = 34


def render_html(document: Document) -> str:
    """Return the whole page."""
    style = resources.files("sfora_ray.reporting").joinpath("report.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", text(document.title)),
        element("style", Markup(style)),
    )
    header = element(
        "header",
        element("h1", text(document.title)),
        element("p", text(document.subtitle), class_="subtitle"),
    )
    main = element("main", header, _contents(document), *(_section(part) for part in document.sections))
    return f"<!doctype html>\n{element('html', head, element('body', main), lang='en')}\n"


def _anchor(section: Section) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")


def _contents(document: Document) -> Markup:
    links = (element("a", text(part.title), href=f"#{_anchor(part)}") for part in document.sections)
    return element("nav", *links, aria_label="Contents")


def _section(section: Section) -> Markup:
    blocks = (_block(block) for block in section.blocks)
    return element("section", element("h2", text(section.title)), *blocks, id=_anchor(section))


def _block(block: Block) -> Markup:
    match block:
        case Paragraph():
            return element("p", text(block.text), class_=block.tone)
        case Bullets():
            return element("ul", *(element("li", text(item)) for item in block.items))
        case Steps():
            return _steps(block)
        case Table():
            return _table(block)
        case Drawing():
            return _drawing(block)
        case Sheet():
            return _sheet(block)
        case Box():
            inner = (_block(part) for part in block.blocks)
            return element("aside", element("h3", text(block.title)), *inner, class_="box")
        case Folded():
            inner = (_block(part) for part in block.blocks)
            return element("details", element("summary", text(block.title)), *inner)


def _steps(block: Steps) -> Markup:
    return element(
        "ol",
        *(
            element(
                "li",
                element("span", text(step.label), class_="label"),
                element("strong", text(step.value)),
                element("span", text(step.detail), class_="detail"),
            )
            for step in block.steps
        ),
        class_="steps",
    )


def _table(block: Table) -> Markup:
    heads = (_cell("th", column, column.title) for column in block.columns)
    rows = (
        element(
            "tr",
            *(_cell("td", column, cell) for column, cell in zip(block.columns, row, strict=True)),
            class_="marked" if place in block.marked else "",
        )
        for place, row in enumerate(block.rows)
    )
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    # A wide table scrolls by itself, also by keyboard, so that the page never does; its caption stays.
    wide = element("div", table, class_="wide", tabindex="0", role="region", aria_label=block.caption)
    return element("div", element("p", text(block.caption), class_="caption"), wide, class_="table")


def _cell(name: str, column: Column, content: str) -> Markup:
    if column.numeric:
        return element(name, text(content), class_="number")
    # A short cell is never broken; a long one is given room, or it would become a tall and narrow tower.
    return element(name, text(content), class_="words short" if len(content) <= _SHORT else "words long")


def _drawing(block: Drawing) -> Markup:
    picture = element("div", inline_svg(block.svg, name=block.name, alt=block.alt), class_="drawing")
    return element("figure", picture, element("figcaption", text(block.caption)))


def _sheet(block: Sheet) -> Markup:
    rows = (element("div", *(_tile(tile) for tile in row), class_="row") for row in block.rows)
    return element(
        "figure",
        element("div", *rows, class_="sheet"),
        element("figcaption", text(block.caption)),
        class_="pictures",
    )


def _tile(tile: Tile) -> Markup:
    return element(
        "div",
        element("img", src=data_uri(tile.content, tile.media_type), alt=tile.alt),
        element("span", text(_MARKS[tile.verdict]), class_="mark"),
        element("span", text(tile.caption), class_="name", title=tile.caption),
        class_=f"tile {tile.verdict}",
    )
