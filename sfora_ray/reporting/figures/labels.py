"""Names written beside points so that none covers another name or a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from sfora_ray.reporting.figures.style import INK, MUTED, PAPER

_GAP = 7.0
_STEP = 6.0
_FONT_SIZE = 8.5


@dataclass(frozen=True)
class Anchor:
    """A point in data coordinates and the name to write beside it."""

    text: str
    x: float
    y: float


def place_labels(figure: Figure, axes: Axes, anchors: Sequence[Anchor]) -> None:
    """Write each name at the free place nearest to its point, with a thin line where that is not beside it.

    Places are tried right and left of the point, further and further up and down; all lengths are in points.
    Names are written from the top down, so the same points always get the same places.
    """
    # The layout has to be settled before lengths in points mean anything.
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    where = {anchor: axes.transData.transform((anchor.x, anchor.y)) for anchor in anchors}
    taken = [Bbox.from_bounds(x - 4.5, y - 4.5, 9, 9) for x, y in where.values()]
    for anchor in sorted(anchors, key=lambda anchor: (-anchor.y, anchor.x, anchor.text)):
        x, y = (float(value) for value in where[anchor])
        width, height = _size(axes, anchor.text)
        box, shift = next(_free_places(x, y, width, height, frame, taken), _beside(x, y, width, height))
        taken.append(box)
        _write(axes, anchor, shift)


def _size(axes: Axes, text: str) -> tuple[float, float]:
    probe = axes.text(0, 0, text, fontsize=_FONT_SIZE)
    extent = probe.get_window_extent()
    probe.remove()
    return extent.width, extent.height


def _beside(x: float, y: float, width: float, height: float) -> tuple[Bbox, tuple[float, float]]:
    return Bbox.from_bounds(x + _GAP, y - height / 2, width, height), (_GAP, 0.0)


def _free_places(
    x: float, y: float, width: float, height: float, frame: Bbox, taken: Sequence[Bbox]
) -> Iterator[tuple[Bbox, tuple[float, float]]]:
    """Yield the free places, nearest first, each with the offset of the name's near edge from the point."""
    for ring in range(60):
        for up in (1, -1) if ring else (1,):
            for side in (1, -1):
                across = side * (_GAP + (5.0 if ring else 0.0))
                left = x + across - (width if side < 0 else 0.0)
                box = Bbox.from_bounds(left, y + up * ring * _STEP - height / 2, width, height)
                if _inside(box, frame) and not any(box.padded(1.0).overlaps(other) for other in taken):
                    yield box, (across, up * ring * _STEP)


def _inside(box: Bbox, frame: Bbox) -> bool:
    return bool(box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1)


def _write(axes: Axes, anchor: Anchor, shift: tuple[float, float]) -> None:
    far = shift[1] != 0
    axes.annotate(
        anchor.text,
        (anchor.x, anchor.y),
        xytext=shift,
        textcoords="offset points",
        ha="left" if shift[0] > 0 else "right",
        va="center",
        fontsize=_FONT_SIZE,
        color=INK,
        arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4} if far else None,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.6},
        zorder=4,
    )
