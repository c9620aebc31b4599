"""Whatever is wrong with the input: one message that names it, exit code 2, and nothing written."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from sfora_ray.models import Conv4Options
from sfora_ray.pack.run_folder import RunFolder
from tests.cli.conftest import Call
from tests.tiny import CLASSES, tiny_config, tiny_values
from tests.tiny_runs import write_config

Values = dict[str, Any]


def misspelt_keys(values: Values, images: Path) -> None:
    values["training"]["epoks"] = 3
    values["samplr"] = values.pop("sampler")


def unknown_component(values: Values, images: Path) -> None:
    values["loss"] = {"name": "hst"}


def wrong_types(values: Values, images: Path) -> None:
    values["training"]["epochs"] = "many"
    values["optimizer"]["lr"] = -1


def class_with_one_image(values: Values, images: Path) -> None:
    for path in sorted((images / "class03").iterdir())[1:]:
        path.unlink()


def class_in_both_splits(values: Values, images: Path) -> None:
    rows = [f"class{label:02d},{'train' if label % 2 else 'test'}" for label in range(CLASSES)]
    (images / "split.csv").write_text("\n".join(["class,split", *rows, "class01,test"]))
    values["data"]["split"] = {"kind": "csv", "path": "split.csv"}


def too_few_classes(values: Values, images: Path) -> None:
    values["sampler"]["batch_size"] = 40


def empty_image(values: Values, images: Path) -> None:
    (images / "class05" / "2.png").write_bytes(b"")


def unreadable_image(values: Values, images: Path) -> None:
    (images / "class05" / "2.png").write_bytes(b"no image")


def no_images(values: Values, images: Path) -> None:
    values["data"]["root"] = str(images / "elsewhere")


def missing_weights(values: Values, images: Path) -> None:
    values["model"]["backbone"] = {"name": "resnet18", "weights": str(images.parent / "absent.safetensors")}


def weights_of_another_network(values: Values, images: Path) -> None:
    network = Conv4Options().build(channels=3, generator=torch.Generator())
    safetensors.torch.save_file(network.state_dict(), images.parent / "conv4.safetensors")
    values["model"]["backbone"] = {"name": "resnet18", "weights": str(images.parent / "conv4.safetensors")}


def unreachable_server(values: Values, images: Path) -> None:
    values["tracking"] = {"uri": "http://127.0.0.1:9"}


def file_store(values: Values, images: Path) -> None:
    values["tracking"] = {"uri": "file:./mlruns"}


def data_parallel_without_ray(values: Values, images: Path) -> None:
    values["resources"] = {"workers_per_member": 2}


WRONG: list[tuple[Callable[[Values, Path], None], tuple[str, ...]]] = [
    (misspelt_keys, ("3 problem(s)", "training.epoks: unknown key. Did you mean 'epochs'", "samplr", "sampler: ")),
    (unknown_component, ("loss: 'hst' is not known. Did you mean 'hist'?",)),
    (wrong_types, ("2 problem(s)", "training.epochs: expected int, got 'many'", "optimizer.lr: ")),
    (class_with_one_image, ("every class needs 2 images or more", "'class03' with 1")),
    (class_in_both_splits, ("split.csv, row 14", "class01")),
    (too_few_classes, ("sampler per_class", "need 10 classes", "got 6 of 6", "Set batch_size to 24")),
    (empty_image, ("class05/2.png: not a readable image, got an empty file",)),
    (unreadable_image, ("class05/2.png: not a readable image",)),
    (no_images, ("elsewhere: not a folder",)),
    (missing_weights, ("absent.safetensors", "must be a file")),
    (weights_of_another_network, ("conv4.safetensors", "must be those of this network", "no 'conv1.weight'")),
    (unreachable_server, ("http://127.0.0.1:9",)),
    (file_store, ("tracking.uri", "must be a server (http://host:5000) or a database")),
    (data_parallel_without_ray, ("resources.workers_per_member", "got 2", "leave out --local")),
]


@pytest.mark.parametrize(("spoil", "words"), WRONG, ids=[spoil.__name__ for spoil, _ in WRONG])
def test_a_bad_config_or_bad_data(
    spoil: Callable[[Values, Path], None], words: tuple[str, ...], images: Path, tmp_path: Path, call: Call
) -> None:
    images = Path(shutil.copytree(images, tmp_path / "images"))
    values = tiny_values(images, tmp_path)
    spoil(values, images)
    config = write_config(tmp_path / "tiny.yaml", values)
    before = files_below(tmp_path)
    ended = call("pack", "run", config, "--local")
    assert ended.code == 2, ended
    assert ended.err.startswith("error: ")
    assert ended.err.count("error: ") == 1
    assert "Traceback" not in ended.err + ended.out
    for word in words:
        assert word in ended.err
    assert files_below(tmp_path) == before


def files_below(place: Path) -> list[Path]:
    """Return what lies in a folder; decoded images may be kept whatever becomes of the pack."""
    return sorted(path for path in place.rglob("*") if not path.is_relative_to(place / "cache"))


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        (None, (), ("no readable config file",)),
        ("{", (), ("not readable as YAML", "line 1")),
        ("- 1", (), ("must hold keys and values", "got list")),
        ("name: a\nname: b", (), ("key 'name' stands twice",)),
        ("name: a", ("training.epochs",), ("override 'training.epochs': must be path=value",)),
        ("name: a", ("name.x=1",), ("override 'name.x=1': there is no 'x' to set",)),
    ],
)
@pytest.mark.parametrize("command", [("pack", "run"), ("data", "check"), ("config", "show")])
def test_an_unreadable_config(
    command: tuple[str, ...],
    text: str | None,
    overrides: tuple[str, ...],
    words: tuple[str, ...],
    tmp_path: Path,
    call: Call,
) -> None:
    config = tmp_path / "tiny.yaml"
    if text is not None:
        config.write_text(text)
    ended = call(*command, config, *overrides)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    for word in words:
        assert word in ended.err


@pytest.mark.parametrize(
    "command", [("pack", "resume"), ("pack", "status"), ("fold",), ("report",), ("mlflow", "sync")]
)
def test_a_folder_that_is_no_run_folder(command: tuple[str, ...], tmp_path: Path, call: Call) -> None:
    ended = call(*command, tmp_path)
    assert ended.code == 2
    assert f"{tmp_path}: no run folder here (no manifest.json)" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_the_same_config_again_is_told_to_resume(images: Path, tmp_path: Path, call: Call) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path), "none")
    config = write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))
    manifest = run.manifest_path.read_bytes()
    ended = call("pack", "run", config, "--local")
    assert ended.code == 2
    assert f"sfora-ray pack resume {run.path}" in ended.err
    assert run.manifest_path.read_bytes() == manifest


def test_a_run_folder_whose_config_was_changed(images: Path, tmp_path: Path, call: Call) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path), "none")
    text = run.manifest_path.read_text()
    run.manifest_path.write_text(text.replace('"epochs": 2', '"epochs": 3'))
    assert run.manifest_path.read_text() != text
    for command in (("pack", "resume"), ("pack", "status"), ("fold",), ("report",)):
        ended = call(*command, run.path)
        assert ended.code == 2
        assert "A changed config needs a run of its own" in ended.err


def test_a_run_folder_without_a_finished_member(images: Path, tmp_path: Path, call: Call) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path), "none")
    before = sorted(run.path.rglob("*"))
    for command, words in ((("fold",), "no member has finished"), (("report",), "no summary.json yet")):
        ended = call(*command, run.path)
        assert (ended.code, words in ended.err) == (2, True), ended
    assert sorted(run.path.rglob("*")) == before


def test_an_unknown_fold(images: Path, tmp_path: Path, call: Call) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path), "none")
    ended = call("fold", run.path, "--fold", "gpu")
    assert ended.code == 2
    assert "got 'gpu'. Did you mean 'gpa'?" in ended.err


def test_data_check_lists_every_unreadable_image(images: Path, tmp_path: Path, call: Call) -> None:
    images = Path(shutil.copytree(images, tmp_path / "images"))
    whole = (images / "class02" / "1.png").read_bytes()
    (images / "class02" / "1.png").write_bytes(whole[: len(whole) // 2])
    (images / "class07" / "3.png").write_bytes(b"no image")
    config = write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))
    ended = call("data", "check", config)
    assert ended.code == 2
    assert "class02/1.png" in ended.err
    assert "class07/3.png" in ended.err
    assert "2 image(s) cannot be read" in ended.err


@pytest.mark.parametrize("arguments", [("pakc",), ("pack", "run"), ("fold", "x", "--foldd", "gpa")])
def test_a_bad_command_line(arguments: tuple[str, ...], call: Call) -> None:
    ended = call(*arguments)
    assert ended.code == 2
    assert "Usage: " in ended.err
