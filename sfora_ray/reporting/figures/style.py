"""The look of all figures, and how one is turned into bytes that never change.

Figures are made without pyplot, so nothing is kept between them. Colours keep their distance for the common
kinds of colour blindness (after Okabe and Ito, darkened until thin lines are readable on white), and markers
tell kinds apart without them. The page replaces each colour by a variable of its own to suit the reader's
light or dark scheme; that is why a figure may use the colours named here and no other.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PAPER = "#fffffe"
INK = "#1f2329"
MUTED = "#5b6470"
GRID = "#dfe3e8"
SERIES = ("#0072b2", "#c8500a", "#00866a", "#a4478f", "#a87a00", "#4a9fd8")
DASHES = ("-", (0, (6, 1.6)), (0, (2, 1.2)), (0, (7, 1.5, 1.5, 1.5)))

WIDTH_INCHES = 6.6

_STYLE: dict[Any, object] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "text.usetex": False,
    # Names of folds are names: a dollar sign in one is no formula.
    "text.parse_math": False,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 9.0,
    "axes.titlecolor": INK,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 9.0,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.facecolor": PAPER,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "grid.linestyle": "-",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 3.0,
    "ytick.major.size": 0.0,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": PAPER,
    "figure.dpi": 72.0,
    "savefig.facecolor": "auto",
    "svg.fonttype": "path",
}

# Every key that would hold a date, an address or a version; None leaves the whole block out.
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(name: str, height_inches: float, paint: Callable[[Figure], None]) -> str:
    """Make a figure, let ``paint`` fill it, and return it as SVG that depends on what was painted alone."""
    with mpl.rc_context(_STYLE | {"svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
        paint(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=_NO_METADATA)
    return stream.getvalue()


def say_empty(axes: Axes, text: str) -> None:
    """Write in the middle of an empty panel why there is nothing to see."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
