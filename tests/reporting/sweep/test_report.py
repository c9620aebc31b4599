"""The report of a sweep: what stands in it, and that it is the same each time."""

import re
from pathlib import Path

import pytest

from sfora_ray.reporting.sweep import write_sweep_report
from sfora_ray.reporting.sweep.axes import ParameterAxis
from sfora_ray.search import Distribution
from sfora_ray.search.distributions import Choice, Integer, LogUniform, OneMinusLogUniform, Uniform
from sfora_ray.sweep.best import write_results
from sfora_ray.sweep.folder import SweepFolder
from tests.sweep.paper import paper_sweep


@pytest.fixture(scope="module")
def sweep(images: Path, tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    sweep = paper_sweep(images, tmp_path_factory.mktemp("reported"))
    write_sweep_report(sweep, write_results(sweep))
    return sweep


@pytest.fixture(scope="module")
def markdown(sweep: SweepFolder) -> str:
    return (sweep.report_path / "report.md").read_text(encoding="utf-8")


def cells(markdown: str, trial: str) -> list[str]:
    """Return the row of a trial in the ranking."""
    (row,) = [line for line in markdown.splitlines() if re.match(rf"\| \**\d+\** \| \**{trial}\** ", line)]
    return [cell.strip().strip("*") for cell in row.strip("|").split("|")]


def test_the_ranking_has_values_members_and_reasons(markdown: str) -> None:
    assert cells(markdown, "t003") == [
        "1",
        "t003",
        "✓ finished",
        "65.00",
        "1.41",
        "2",
        "4",
        "2",
        "0.2",
        "16",
        "0.001",
        "",
    ]
    stopped = cells(markdown, "t001")
    assert stopped[:4] == ["3", "t001", "◦ stopped early", "70.00"]
    assert stopped[-2:] == ["–", "by asha after epoch 2, at 0.7000"]
    assert cells(markdown, "t004")[3] == "–"
    assert "- t002: epoch 1, step 3: the loss is nan." in markdown
    assert "mean over 2 seeds" in markdown


def test_the_headline_says_what_it_was_selected_on(markdown: str) -> None:
    assert "6 trials (2 finished, 1 stopped early, 1 not finite, 1 failed, 1 not ended)" in markdown
    assert "The best is t003: R@1 65.00 ± 1.41 % on held-out training classes, epoch 2" in markdown
    assert "selection: test" not in markdown


def test_selection_on_test_is_stamped_on_page_and_figures(images: Path, tmp_path: Path) -> None:
    sweep = paper_sweep(images, tmp_path, "selection.split=test")
    paths = write_sweep_report(sweep, write_results(sweep))
    assert "selection: test. The configurations were chosen on the test classes themselves" in paths.html.read_text()
    assert paths.markdown.read_text().count("selection: test") >= 3


def test_the_same_folder_gives_the_same_bytes(sweep: SweepFolder) -> None:
    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sweep.report_path.rglob("*") if path.is_file()}

    before = content()
    assert set(before) == {
        "index.html",
        "report.md",
        "sweep_scatter.svg",
        "sweep_parallel.svg",
        "sweep_best_so_far.svg",
    }
    write_sweep_report(sweep, write_results(sweep))
    assert content() == before


def test_a_sweep_without_any_value_has_a_report(images: Path, tmp_path: Path) -> None:
    sweep = paper_sweep(images, tmp_path)
    for number in (0, 1, 3, 4, 5):
        for path in (sweep.trial(number).record_path, sweep.trial(number).end_path):
            path.unlink(missing_ok=True)
    paths = write_sweep_report(sweep, write_results(sweep))
    assert "No trial has come to anything yet." in paths.markdown.read_text()


@pytest.mark.parametrize(
    ("distribution", "places"),
    [
        (Uniform(low=1, high=3), {1: 0, 2: 0.5, 3: 1}),
        (LogUniform(low=0.1, high=10), {0.1: 0, 1: 0.5, 10: 1}),
        (OneMinusLogUniform(low=0.9, high=0.999), {0.9: 0, 0.99: 0.5, 0.999: 1}),
        (Integer(low=2, high=6), {2: 0, 5: 0.75}),
        (Integer(low=1, high=16, log=True), {1: 0, 4: 0.5, 16: 1}),
        (Choice(values=("a", "b")), {"a": 0.25, "b": 0.75}),
    ],
)
def test_where_a_value_stands_on_its_axis(distribution: Distribution, places: dict[object, float]) -> None:
    axis = ParameterAxis("path", distribution)
    for value, place in places.items():
        assert axis.at({"path": value}) == pytest.approx(place)
    assert axis.at({}) is None
    ticks = axis.ticks()
    assert all(0 <= tick.at <= 1.0 + 1e-9 for tick in ticks)
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)


def test_round_values_between_the_ends_of_a_logarithmic_axis() -> None:
    labels = [tick.label for tick in ParameterAxis("x", LogUniform(low=0.02, high=0.5)).ticks()]
    assert labels == ["0.02", "0.05", "0.1", "0.2", "0.5"]
    momentum = [tick.label for tick in ParameterAxis("m", OneMinusLogUniform(low=0.9, high=0.9999)).ticks()]
    assert momentum == ["0.9", "0.99", "0.999", "0.9999"]
