"""An SVG document made part of a page: no prologue, no address, no clash of ids, the page's colours."""

from __future__ import annotations

import re

from sfora_ray.reporting.figures.style import GRID, INK, MUTED, PAPER, SERIES
from sfora_ray.reporting.html import Markup, text

_VARIABLES = {
    PAPER: "var(--paper)",
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    **{colour: f"var(--series-{place})" for place, colour in enumerate(SERIES)},
}


def inline_svg(svg: str, *, name: str, alt: str) -> Markup:
    """Return the ``<svg>`` element of a figure of ours, fit to stand in an HTML page beside others."""
    body = svg[svg.index("<svg") :]
    # HTML knows both namespaces by itself; as attributes they are web addresses that mean nothing here.
    body = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", body)
    body = body.replace("xlink:href=", "href=")
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, variable)
    opening = re.sub(r'\s(width|height)="[^"]*"', "", body[: body.index(">")])
    label = f' role="img" aria-label="{text(alt)}"'
    return Markup(opening + label + body[body.index(">") :].rstrip())
