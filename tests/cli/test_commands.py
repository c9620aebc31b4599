import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import sfora_ray.cli.pack
from sfora_ray.config.load import build_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.refold import refold
from tests.cli.conftest import Call
from tests.tiny import STEPS_PER_EPOCH, tiny_config, tiny_values
from tests.tiny_runs import train_here, write_config


@pytest.fixture
def config_path(images: Path, tmp_path: Path) -> Path:
    return write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))


@pytest.fixture(scope="module")
def folded(images: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = train_here(tiny_config(images, tmp_path_factory.mktemp("folded")))
    refold(run, (), say=lambda _: None)
    return run


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("--version",), ("pack", "--help")])
def test_help(arguments: tuple[str, ...], call: Call) -> None:
    ended = call(*arguments)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out


def test_help_and_version_load_no_torch() -> None:
    code = "import sys; from sfora_ray.cli.main import root; root(['{}'], standalone_mode=False); print(*sys.modules)"
    for option in ("--help", "--version"):
        command = [sys.executable, "-c", code.format(option)]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        loaded = set(said.splitlines()[-1].split())
        assert "click" in loaded
        assert not loaded & {"torch", "ray", "mlflow", "numpy", "pydantic", "matplotlib"}


def test_dry_run_prints_steps_and_parameter_groups(config_path: Path, tmp_path: Path, call: Call) -> None:
    ended = call("pack", "run", config_path, "--dry-run", "training.epochs=3")
    assert ended.code == 0
    assert f"{STEPS_PER_EPOCH} per epoch of batch 12, 3 epochs, {3 * STEPS_PER_EPOCH} in all" in ended.out
    assert "train 6 classes, 48 images; test 6 classes, 48 images" in ended.out
    assert "2, seeds 5, 3" in ended.out
    groups = {cells[0]: cells[1:] for line in ended.out.splitlines() if len(cells := line.split()) == 6}
    # Widths 4, 4, 8, 8 over 3 channels; two numbers a filter in BatchNorm, two a class and dimension in HIST.
    filters = 9 * (3 * 4 + 4 * 4 + 4 * 8 + 8 * 8)
    assert groups["backbone.decay"] == ["4", f"{filters:,}", "0.001", "0.0001", "rests"]
    assert groups["backbone.no_decay"] == ["8", "48", "0.001", "0", "rests"]
    assert groups["head.decay"] == ["1", "64", "0.001", "0.0001", "learns"]
    assert groups["hist.distributions"][1:3] == [str(2 * 6 * 8), "0.03"]
    assert not (tmp_path / "runs").exists()


def test_schema_accepts_the_config_and_refuses_a_misspelt_one(images: Path, tmp_path: Path, call: Call) -> None:
    ended = call("config", "schema")
    schema = json.loads(ended.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    values = tiny_values(images, tmp_path)
    jsonschema.validate(values, schema)
    values["training"]["epoks"] = 3
    with pytest.raises(jsonschema.ValidationError, match="epoks"):
        jsonschema.validate(values, schema)


def test_show_prints_the_whole_config_as_yaml(config_path: Path, images: Path, tmp_path: Path, call: Call) -> None:
    expected = tiny_config(images, tmp_path, "optimizer.lr=2e-4")
    ended = call("config", "show", config_path, "optimizer.lr=2e-4")
    assert ended.out.splitlines()[0] == f"# {expected.run_name}"
    assert build_config(yaml.safe_load(ended.out), place="shown") == expected


def test_reference_names_every_top_level_key(call: Call) -> None:
    ended = call("config", "reference")
    assert ended.code == 0
    for key in PackConfig.model_fields:
        assert f"`{key}" in ended.out


def test_data_check_of_good_images(config_path: Path, call: Call) -> None:
    ended = call("data", "check", config_path)
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "train: 6 classes, 48 images",
        "test: 6 classes, 48 images",
        "every image can be read",
    ]


def test_status_of_a_pack_that_has_not_begun(images: Path, tmp_path: Path, call: Call) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path), "none")
    ended = call("pack", "status", run.path)
    assert ended.code == 0
    assert ended.out.splitlines()[0] == f"{run.path.name}: never started, 2 members planned"
    assert [line.split()[:4] for line in ended.out.splitlines()[2:]] == [
        ["m00", "seed", "5", "queued"],
        ["m01", "seed", "3", "queued"],
    ]


def test_status_of_a_finished_pack(folded: RunFolder, call: Call) -> None:
    ended = call("pack", "status", folded.path)
    assert ended.code == 0
    result = folded.results()["m01"]
    assert f"{result.metrics['recall_at_1']:.4f}" in ended.out
    assert ended.out.splitlines()[0] == f"{folded.path.name}: finished, 2 of 2 members finished"
    for name in ("finished", "single, mean of 2", "concat", "gpa", "wccn", "retained"):
        assert name in ended.out


def test_status_as_json(folded: RunFolder, call: Call) -> None:
    said = json.loads(call("pack", "status", folded.path, "--json").out)
    assert said["pack"] == {"state": "finished", "finished": 2, "planned": 2, "holder": ""}
    assert [(member["id"], member["state"], member["recall_at_1"]) for member in said["members"]] == [
        (spec.id, "finished", folded.results()[spec.id].metrics["recall_at_1"]) for spec in folded.specs()
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to extend it by"),
        (("--seeds", "7,x"), "must be whole numbers with commas between them, got '7,x'"),
        (("--seeds", "5,7"), "these members already, got 5"),
        (("--epochs", "2"), "must be above the 2"),
    ],
)
def test_extend_refuses_with_exit_code_2(options: tuple[str, ...], said: str, folded: RunFolder, call: Call) -> None:
    before = {path: path.stat().st_mtime_ns for path in folded.path.rglob("*")}
    ended = call("pack", "extend", folded.path, "--local", *options)
    assert (ended.code, said in ended.err) == (2, True), ended
    assert {path: path.stat().st_mtime_ns for path in folded.path.rglob("*")} == before


def test_extend_takes_seeds_and_epochs(folded: RunFolder, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def extend_pack(place: str, launcher: object, *, seeds: object, epochs: object, watch: object, say: object) -> Any:
        asked.append((str(place), seeds, epochs))
        return folded, folded.summary()

    monkeypatch.setattr(sfora_ray.cli.pack, "extend_pack", extend_pack)
    assert call("pack", "extend", folded.path, "--seeds", "6, 7", "--epochs", "80").code == 0
    assert asked == [(str(folded.path), (6, 7), 80)]


def test_fold_prints_the_fold_that_was_asked_for(folded: RunFolder, call: Call) -> None:
    ended = call("fold", folded.path, "--fold", "uncentred:4", "--fold", "gpa+wccn:4")
    assert ended.code == 0
    for name in ("uncentred-4", "gpa+wccn-4"):
        assert folded.fold_path(name).is_file()
        assert name in ended.out
    dims = {fold.name: fold.dim for fold in folded.summary().folds}
    # What the config names stays, and ships as before.
    assert dims.items() >= {"concat": 16, "mean": 8, "gpa": 8, "wccn": 8, "uncentred-4": 4, "gpa+wccn-4": 4}.items()
    assert next(iter(dims)) == "concat"


def test_report_is_rebuilt_from_the_folder_alone(folded: RunFolder, call: Call) -> None:
    page = folded.report_path / "index.html"
    page.unlink()
    ended = call("report", folded.path)
    assert ended.code == 0
    assert str(page) in ended.out
    assert page.stat().st_size > 1000
