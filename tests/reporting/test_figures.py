import re
import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from sfora_ray.pack.summary import CurvePoint, FoldFacts
from sfora_ray.reporting.figures import MemberCurve, draw_fold_plane, draw_learning_curves, draw_pack_curve
from sfora_ray.reporting.figures.labels import Anchor, place_labels
from sfora_ray.reporting.figures.pack_curve import _error_bars
from sfora_ray.reporting.figures.style import GRID, INK, MUTED, PAPER, SERIES
from sfora_ray.reporting.inline_svg import inline_svg


def _fold(name: str, dim: int, fitted_on: str, retained: float) -> FoldFacts:
    values = {"name": name, "dim": dim, "fitted_on": fitted_on, "retained": retained, "num_members": 4}
    return FoldFacts.model_validate({**values, "metrics": {"recall_at_1": 0.5}})


FOLDS = [
    _fold("concat", 2048, "none", 1.0),
    _fold("gpa", 512, "train", 0.98),
    _fold("$x^2", 512, "test", 0.985),
]
CURVES = [
    MemberCurve("m00", ((1, 2.0), (2, 1.0)), ((2, 0.5),), 2),
    MemberCurve("m01", (), (), None),
]
POINTS = [
    CurvePoint(size=1, subsets=2, metrics={"recall_at_1": 0.5}, ci95={"recall_at_1": (0.48, 0.55)}),
    CurvePoint(size=2, subsets=1, metrics={"recall_at_1": 0.6}, ci95=None),
]
SVGS = {
    "folds": draw_fold_plane(FOLDS),
    "no_folds": draw_fold_plane([]),
    "curves": draw_learning_curves(CURVES, split="validation"),
    "no_curves": draw_learning_curves([], split="test"),
    "pack": draw_pack_curve(POINTS),
}


@pytest.mark.parametrize("name", SVGS)
def test_svg_is_whole_and_uses_the_named_colours_only(name: str) -> None:
    ElementTree.fromstring(SVGS[name])
    used = set(re.findall(r"#[0-9a-f]{6}\b", SVGS[name]))
    assert used <= {PAPER, INK, MUTED, GRID, *SERIES}
    assert "<dc:date>" not in SVGS[name]


@pytest.mark.parametrize("name", SVGS)
def test_inline_svg_names_no_address_and_owns_its_ids(name: str) -> None:
    markup = inline_svg(SVGS[name], name=name, alt='a "b"')
    assert "http" not in markup
    assert not re.search(r"#[0-9a-f]{6}\b", markup)
    identifiers = set(re.findall(r'\bid="([^"]+)"', markup))
    assert identifiers
    assert all(identifier.startswith(f"{name}-") for identifier in identifiers)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', markup)) <= identifiers
    assert 'aria-label="a &quot;b&quot;"' in markup


def test_figures_leave_no_settings_behind() -> None:
    before = dict(mpl.rcParams)
    draw_fold_plane(FOLDS)
    assert dict(mpl.rcParams) == before


def test_error_bars_reach_from_the_mean_to_the_bounds() -> None:
    bars = _error_bars(POINTS, "recall_at_1")
    assert bars[:, 0] == pytest.approx([2.0, 5.0])
    assert bars[:, 1] == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("count", [1, 5, 16])
def test_labels_never_overlap(count: int) -> None:
    with mpl.rc_context({"figure.dpi": 72.0, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(6.6, 4.9))
        axes = figure.subplots()
        axes.set_xlim(1, 3)
        axes.set_ylim(0, 100)
        anchors = [Anchor(f"name number {place}", 2.0, 50 + 0.3 * place) for place in range(count)]
        place_labels(figure, axes, anchors)
        figure.draw_without_rendering()
        notes = [note for note in axes.texts if isinstance(note, Annotation)]
        # Of the text alone: an annotation's own extent includes its line.
        boxes = [super(Annotation, note).get_window_extent() for note in notes]
    assert sorted(note.get_text() for note in notes) == sorted(anchor.text for anchor in anchors)
    frame = axes.get_window_extent()
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1
