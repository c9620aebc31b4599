import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from sfora_ray.cli.comparison_table import print_comparison
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.refold import refold
from tests.cli.conftest import Call
from tests.reporting.comparison.synthetic import HOSTILE, make_comparison
from tests.tiny import tiny_config, tiny_values
from tests.tiny_runs import train_here, write_config


@pytest.fixture(scope="module")
def packs(images: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, RunFolder]:
    place = tmp_path_factory.mktemp("compared")
    runs = (
        train_here(tiny_config(images, place, "recipe={name: plain}", "name=plain")),
        train_here(tiny_config(images, place)),
    )
    for run in runs:
        refold(run, (), say=lambda _: None)
    return runs


def test_table_says_labels_first_and_fits_100_columns() -> None:
    long = "omniglot-proxy-anchor-distill-with-a-name-of-more-than-sixty-characters"
    console = Console(width=200, record=True, file=io.StringIO())
    print_comparison(console, make_comparison(labels=("omniglot-hist", "herd[bold]", long, HOSTILE)), Path("r.html"))
    lines = console.export_text().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 100
    text = "\n".join(lines)
    assert lines[0].strip() == "epochs selected on test"
    row = next(" ".join(line.split()) for line in lines if line.startswith("herd[bold]") and "R@1" in line)
    assert row == "herd[bold] R@1 5 +0.69 [+0.18, +1.20] 0.0625 0.125 +1.36 5"
    by_size = next(" ".join(line.split()) for line in lines if line.startswith("herd[bold]") and " 384 " in line)
    assert by_size == "herd[bold] 3 384 78.00 78.23 +0.23 [-0.37, +0.73]"
    assert "not compared: fold pca of hist against herd: other widths <64 and 128>" in text


def test_compare_prints_a_table_and_writes_the_report(
    packs: tuple[RunFolder, RunFolder], tmp_path: Path, call: Call
) -> None:
    ended = call("compare", *(run.path for run in packs), "--output", tmp_path / "report")
    assert (ended.code, ended.err) == (0, "")
    assert "One member minus one of plain, over seeds" in ended.out
    assert str(tmp_path / "report" / "index.html") in ended.out
    assert (tmp_path / "report" / "comparison.md").is_file()


def test_compare_as_json(packs: tuple[RunFolder, RunFolder], tmp_path: Path, call: Call) -> None:
    ended = call("compare", *(run.path for run in packs), "--output", tmp_path, "--json")
    assert ended.code == 0
    assert json.loads(ended.out) == json.loads((tmp_path / "comparison.json").read_text())


@pytest.mark.parametrize("names", [(), ("plain",), ("plain", "nowhere")])
def test_compare_without_two_packs(packs: tuple[RunFolder, RunFolder], names: tuple[str, ...], call: Call) -> None:
    places = {"plain": packs[0].path, "nowhere": packs[0].path / "nowhere"}
    ended = call("compare", *(places[name] for name in names))
    assert ended.code == 2
    assert len(ended.err.strip().splitlines()) == 1


def test_compare_refuses_packs_of_other_test_images(
    packs: tuple[RunFolder, RunFolder], images: Path, tmp_path: Path, call: Call
) -> None:
    other = train_here(tiny_config(images, tmp_path, "data.split={kind: seeded}", "seeds=[5]"))
    refold(other, (), say=lambda _: None)
    ended = call("compare", packs[0].path, other.path, "--output", tmp_path / "report")
    assert ended.code == 2
    assert not (tmp_path / "report").exists()


def test_ablation_of_finished_packs_compares_them(
    packs: tuple[RunFolder, RunFolder], images: Path, tmp_path: Path, call: Call
) -> None:
    values = tiny_values(images, packs[0].path.parents[1])
    plain = write_config(tmp_path / "plain.yaml", {**values, "recipe": {"name": "plain"}, "name": "plain"})
    distilled = write_config(tmp_path / "distilled.yaml", values)
    ended = call("ablation", plain, distilled, "--local", "--output", tmp_path / "report")
    assert ended.code == 0, ended.err
    assert "Recall@1 minus that of plain by pack size" in ended.out
    assert (tmp_path / "report" / "comparison.json").is_file()


def test_ablation_of_other_seeds_trains_nothing(images: Path, tmp_path: Path, call: Call) -> None:
    values = tiny_values(images, tmp_path)
    first = write_config(tmp_path / "first.yaml", values)
    second = write_config(tmp_path / "second.yaml", {**values, "seeds": [7]})
    ended = call("ablation", first, second, "--local")
    assert ended.code == 2
    assert "must have the same seeds" in ended.err
    assert not (tmp_path / "runs").exists()
