import json
import re
from pathlib import Path

import pytest

from sfora_ray.comparison.records import Comparison
from sfora_ray.reporting.blocks import Block, Drawing, Table
from sfora_ray.reporting.comparison import ComparisonPaths, write_comparison
from sfora_ray.reporting.comparison.wording import selection_stamp
from tests.reporting.comparison.synthetic import HOSTILE, LABELS, make_comparison
from tests.reporting.page import Page


@pytest.mark.parametrize(
    "words",
    [
        "herd against hist, Recall@1: one member +0.69 [+0.18, +1.20] points over seeds, above zero (n = 5, Holm",
        "the packs of 5 +0.40 [-0.71, +1.51] points over classes, not told apart from zero (n = 2,120 queries",
        "fold pca of hist against herd: other widths <64 and 128>",
        "75.40 ± 1.10 [74.00, 76.80]",
        "82.40 [79.40, 85.40]",  # the fold that ships: wccn, not the transductive one before it
        "+1.36 [+0.17, +2.51]",
        "net.safetensors 098609329332",
        "hist: /runs/0",
    ],
)
def test_page_says(html: str, words: str) -> None:
    assert words in Page(html).text


def test_labels_come_before_every_number(html: str) -> None:
    text = Page(html).text
    first = text.index("+0.69")
    assert text.index("epochs selected on test") < first
    assert text.index("weights differ: a.pth | b.pth") < first


def test_every_table_and_figure_of_numbers_is_stamped(blocks: tuple[Block, ...]) -> None:
    drawings = [block for block in blocks if isinstance(block, Drawing)]
    assert len(drawings) == 5
    for drawing in drawings:
        assert "Selection: test" in drawing.caption
        assert "95 %" in drawing.caption
        assert re.search(r"n = 5|n seeds", drawing.caption)
    scored = [block for block in blocks if isinstance(block, Table) and "in points of %" in block.caption]
    scored += [block for block in blocks if isinstance(block, Table) and "R@1 in %" in block.caption]
    assert len(scored) == 6
    assert all("selection: test" in block.caption for block in scored)


def test_an_interval_that_holds_zero_is_not_marked(blocks: tuple[Block, ...]) -> None:
    tables = {block.caption[:8]: block for block in blocks if isinstance(block, Table)}
    assert tables["Minus th"].marked == frozenset()
    assert tables["One memb"].marked == {0, 1}  # the last such table: the other metrics


def test_mixed_selections_are_told_apart() -> None:
    first, *others = make_comparison(selection="last").entries
    on_test = first.model_copy(update={"facts": first.facts.model_copy(update={"selection": "test"})})
    stamp = selection_stamp((on_test, *others))
    assert stamp == f"hist: selection: test, optimistic; herd, {HOSTILE}: selection: none, last epochs"


def test_page_stands_alone_and_is_well_formed(html: str) -> None:
    page = Page(html)
    assert page.open == []
    assert "script" not in page.tags
    assert all(value.startswith("#") for value in page.values("href"))
    assert not [value for _, _, value in page.attributes if "://" in value]
    identifiers = page.values("id")
    assert len(identifiers) == len(set(identifiers))
    assert page.tags.count("svg") == 5


def test_names_are_escaped(html: str, markdown: str) -> None:
    assert HOSTILE in Page(html).text
    assert "<script" not in html
    assert "<script" not in markdown


def test_markdown_links_its_figures_and_has_every_difference(report: ComparisonPaths, markdown: str) -> None:
    links = re.findall(r"\]\((figures/[a-z_]+\.svg)\)", markdown)
    assert len(links) == 5
    assert all((report.markdown.parent / link).is_file() for link in links)
    rows = [line for line in markdown.splitlines() if line.startswith("| herd | 3 |")]
    # 0.69 / 3 points, for Recall@1 and MAP@R alike.
    assert rows == ["| herd | 3 | 384 | 5 | 78.00 | +0.23 \\[-0.37, +0.73\\] | 78.00 | +0.23 \\[-0.37, +0.73\\] |"]


def test_record_beside_it_is_the_comparison(report: ComparisonPaths, comparison: Comparison) -> None:
    assert Comparison.model_validate(json.loads(report.record.read_text())) == comparison


def test_same_record_gives_same_bytes(report: ComparisonPaths, comparison: Comparison, tmp_path: Path) -> None:
    again = write_comparison(comparison, tmp_path)
    for one, other in zip(report.all(), again.all(), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_comparison_of_records_alone_has_a_report(tmp_path: Path) -> None:
    full = make_comparison(seeds=1)
    bare = [entry.model_copy(update={"curve": (), "folds": (), "epochs": {}, "single": {}}) for entry in full.entries]
    empty = full.model_copy(update={"entries": tuple(bare), "seeds": (), "queries": (), "sizes": (), "labels": ()})
    text = Page(write_comparison(empty, tmp_path).html.read_text()).text
    assert f"{LABELS[1]} against hist, Recall@1: nothing could be compared" in text
    assert "No pack was folded" in text
