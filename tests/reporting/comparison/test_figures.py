import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from sfora_ray.comparison.records import Comparison
from sfora_ray.reporting.comparison.figures import (
    draw_ablation,
    draw_folds,
    draw_forest,
    draw_learning_curves,
    draw_pack_curves,
    forest,
)
from sfora_ray.reporting.comparison.figures.folds import fold_rows
from sfora_ray.reporting.comparison.figures.learning_curves import shown_keys, shown_split
from sfora_ray.reporting.comparison.figures.style import bars, offsets
from sfora_ray.reporting.figures.style import GRID, INK, MUTED, PAPER, SERIES
from tests.reporting.comparison.synthetic import DIM, make_comparison


def _svgs(comparison: Comparison) -> dict[str, str]:
    return {
        "forest": draw_forest(comparison),
        "ablation": draw_ablation(comparison),
        "curves": draw_pack_curves(comparison.entries),
        "learning": draw_learning_curves(comparison.entries),
        "folds": draw_folds(comparison.entries),
    }


def test_svg_is_whole_and_uses_the_named_colours_only() -> None:
    # More packs than there are colours.
    for svg in _svgs(make_comparison(labels=tuple(f"pack {place}" for place in range(7)))).values():
        ElementTree.fromstring(svg)
        assert set(re.findall(r"#[0-9a-f]{6}\b", svg)) <= {PAPER, INK, MUTED, GRID, *SERIES}


def test_forest_has_a_row_for_each_test_with_its_own_number() -> None:
    rows = forest.forest_rows(make_comparison(labels=("hist", "herd", "other")))
    assert [(row.other, row.text, round(row.difference, 4)) for row in rows] == [
        ("herd", "one member, over seeds (n = 5)", 0.0069),
        ("herd", "concat of 5, over classes (n = 2,120)", 0.0040),
        ("herd", "wccn of 5, over classes (n = 2,120)", 0.0040),
        ("other", "one member, over seeds (n = 5)", 0.0138),
        ("other", "concat of 5, over classes (n = 2,120)", 0.0080),
        ("other", "wccn of 5, over classes (n = 2,120)", 0.0080),
    ]


def test_forest_draws_points_and_intervals_where_they_belong() -> None:
    comparison = make_comparison(labels=("hist", "herd"))
    figure = Figure()
    axes = figure.subplots()
    forest._paint_rows(axes, comparison, forest.forest_rows(comparison))
    marks = [line for line in axes.lines if line.get_marker() == "s"]
    assert [np.asarray(line.get_xdata()).tolist() for line in marks] == [
        [pytest.approx(0.69)],
        [pytest.approx(0.4)],
        [pytest.approx(0.4)],
    ]
    first = np.asarray(axes.collections[0].get_paths()[0].vertices)
    assert sorted(first[:, 0]) == pytest.approx([0.18, 1.20])
    assert axes.yaxis_inverted()


def test_bars_reach_from_the_mean_to_the_ends() -> None:
    below, above = bars([0.5, 0.6], [(0.48, 0.55), None])
    assert below == pytest.approx([2.0, 0.0])
    assert above == pytest.approx([5.0, 0.0])


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_marks_of_one_size_stay_between_its_neighbours(count: int) -> None:
    places = offsets(count)
    assert sum(places) == pytest.approx(0)
    assert len(set(places)) == count
    assert max(places) < 0.5


def test_losses_are_drawn_for_one_objective_only() -> None:
    entries = list(make_comparison().entries)
    assert shown_keys(entries) == ("test.recall_at_1", "train.loss")
    facts = entries[1].facts.model_copy(update={"objective": "proxy_anchor"})
    entries[1] = entries[1].model_copy(update={"facts": facts})
    assert shown_keys(entries) == ("test.recall_at_1",)


def test_the_split_that_most_packs_measured_is_shown() -> None:
    entries = list(make_comparison().entries)
    validated = {"validation.recall_at_1": entries[0].epochs["test.recall_at_1"]}
    only = [entry.model_copy(update={"epochs": validated}) for entry in entries]
    assert shown_split(only) == "validation"
    assert shown_split([entries[0], only[1]]) == "test"


def test_folds_of_other_widths_have_rows_of_their_own() -> None:
    entries = list(make_comparison(labels=("a", "b")).entries)
    folds = tuple(fold.model_copy(update={"dim": 64}) if fold.name == "wccn" else fold for fold in entries[1].folds)
    rows = fold_rows([entries[0], entries[1].model_copy(update={"folds": folds})])
    assert rows == (
        f"concat, {5 * DIM}-d",
        f"gpa-transductive, {DIM}-d (upper bound)",
        f"wccn, {DIM}-d",
        "wccn, 64-d",
    )
