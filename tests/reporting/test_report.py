import shutil
from pathlib import Path

import pytest

from sfora_ray.errors import RunFolderError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.reporting import ReportPaths, write_report
from tests.reporting.page import Page
from tests.reporting.synthetic import FOLDS, HOSTILE, make_run


@pytest.mark.parametrize(
    "number",
    [
        "68.12 ± 0.43 [67.62, 68.62]",  # one member
        "74.02",  # the concatenation
        "73.05",  # the first honest fold: gpa, although gpa-transductive comes first and is higher
        "98.69",  # 0.7305 / 0.7402
        "n = 4, epochs selected on validation",
        "[70.95, 74.95]",  # its bootstrap interval
        "It was not chosen by its score",
        "1 h 02 min",
        "812",
        "conv4, 8 dimensions",
        "training.epochs",
        "2 classes | with <few> images left out",
        "m01: 1 of 8 classes never drawn",
    ],
)
def test_page_says(html: str, number: str) -> None:
    assert number in Page(html).text


def test_headline_does_not_take_a_transductive_fold(html: str) -> None:
    text = Page(html).text
    headline = text[: text.index("All folds")]
    assert "by gpa (fitted on the training images) they keep 73.05 %" in headline
    assert "73.61" not in headline


@pytest.mark.parametrize(("name", "dim", "fitted_on", "recall"), FOLDS)
def test_every_fold_has_its_row(markdown: str, name: str, dim: int, fitted_on: str, recall: float) -> None:
    words = {"none": "nothing", "train": "train (inductive)", "test": "test (transductive: upper bound)"}
    rows = [line.replace("**", "") for line in markdown.splitlines()]
    row = next(line for line in rows if line.startswith(f"| {name} |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] == [name, str(dim), words[fitted_on]]
    assert cells[4] == f"{100 * recall:.2f}"
    assert cells[7] == f"{100 * recall / 0.7402:.2f}"


def test_page_stands_alone(html: str) -> None:
    page = Page(html)
    assert "script" not in page.tags
    assert not {"link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert all(value.startswith("data:image/") for value in page.values("src"))
    assert all(value.startswith("#") for value in page.values("href"))
    assert not [key for _, key, _ in page.attributes if key.startswith("on")]
    assert not [value for _, _, value in page.attributes if "://" in value]
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_page_is_well_formed(html: str) -> None:
    page = Page(html)
    assert page.open == []
    identifiers = page.values("id")
    assert len(identifiers) == len(set(identifiers))
    assert {value[1:] for value in page.values("href")} <= set(identifiers)
    assert all(value for value in page.values("alt"))
    assert page.tags.count("svg") == 3


def test_names_are_escaped(html: str, markdown: str) -> None:
    page = Page(html)
    assert HOSTILE in page.text
    assert "<script" not in html
    assert "<script" not in markdown
    assert r"z&lt;script&gt;alert(1)&lt;&amp;\|\*x\*" in markdown


def test_markdown_tables_are_even_and_links_lead_to_files(report: ReportPaths, markdown: str) -> None:
    widths: list[int] = []
    for line in markdown.splitlines():
        if line.startswith("| "):
            widths.append(line.replace(r"\|", "").count("|"))
        else:
            assert len(set(widths)) <= 1
            widths = []
    linked = {part.split(")")[0] for part in markdown.split("](")[1:]}
    assert linked == {f"figures/{path.name}" for path in report.figures}
    assert all(path.is_file() for path in report.figures)


def test_both_texts_have_the_same_sections(html: str, markdown: str) -> None:
    titles = [line.removeprefix("## ") for line in markdown.splitlines() if line.startswith("## ")]
    assert len(titles) == 7
    assert all(f"<h2>{title}</h2>" in html for title in titles)


def test_same_folder_gives_the_same_bytes(run: RunFolder, folder: Path, report: ReportPaths) -> None:
    before = {path: path.read_bytes() for path in (report.html, report.markdown, *report.figures)}
    shutil.rmtree(run.report_path)
    again = write_report(run, cache_dir=folder / "cache")
    assert again == report
    assert {path: path.read_bytes() for path in before} == before


def test_pictures_of_an_earlier_report_go(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    stale = run.report_path / "figures" / "q99-n1.jpg"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"old")
    report = write_report(run, cache_dir=tmp_path)
    assert not stale.exists()
    assert sorted(stale.parent.iterdir()) == sorted(report.figures)


def test_partial_pack_says_so_first(tmp_path: Path) -> None:
    run = make_run(tmp_path, failed=("m02",))
    page = Page(write_report(run, cache_dir=tmp_path).html.read_text())
    result = page.text[page.text.index("Result Partial pack") :]
    assert result.startswith("Result Partial pack: 3 of 4 members finished")
    assert "m02 failed (CUDA out of memory | on <node-7>)" in result
    assert "✗ failed" in result
    assert "n = 3" in result


@pytest.mark.parametrize(("selection", "said"), [("test", "optimistic"), ("last", "last epochs, nothing selected")])
def test_selection_is_stamped_on_every_table_of_numbers(tmp_path: Path, selection: str, said: str) -> None:
    run = make_run(tmp_path, selection=selection)
    markdown = write_report(run, cache_dir=tmp_path).markdown.read_text()
    captions = [line for line in markdown.splitlines() if line.startswith("*") and "in %" in line]
    assert len(captions) == 4
    assert all(said in caption for caption in captions)


def test_no_data_no_pictures_but_a_report(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    shutil.rmtree(tmp_path / "images")
    report = write_report(run, cache_dir=tmp_path)
    page = Page(report.html.read_text())
    assert "The picture sheet is missing" in page.text
    assert "img" not in page.tags
    assert len(report.figures) == 3


def test_changed_data_give_no_pictures(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    (tmp_path / "images" / "class 01" / "0.png").unlink()
    assert "changed since the pack was trained" in Page(write_report(run, cache_dir=tmp_path).html.read_text()).text


def test_no_embeddings_give_no_pictures(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.member(run.specs()[1]).embeddings_path("test").unlink()
    text = Page(write_report(run, cache_dir=tmp_path).html.read_text()).text
    assert "The picture sheet is missing" in text


def test_no_summary_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.summary_path.unlink()
    with pytest.raises(RunFolderError, match="has no summary"):
        write_report(run, cache_dir=tmp_path)
    assert not run.report_path.exists()


def test_nothing_finished_still_has_a_report(tmp_path: Path) -> None:
    run = make_run(tmp_path, failed=("m00", "m01", "m02", "m03"))
    summary = run.summary()
    run.write_summary(summary.model_copy(update={"single": {}, "pack_curve": (), "folds": ()}))
    text = Page(write_report(run, cache_dir=tmp_path).html.read_text()).text
    assert "Partial pack: 0 of 4 members finished" in text
    assert "No fold was made." in text


def test_one_member_is_no_pack(tmp_path: Path) -> None:
    run = make_run(tmp_path, failed=("m01", "m02", "m03"))
    text = Page(write_report(run, cache_dir=tmp_path).html.read_text()).text
    assert "fewer than two members" in text
    assert "side by side" not in text
    assert "they keep" not in text
