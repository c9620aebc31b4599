"""Weights and folds that go to whoever loads the model: proved whole before they are sent."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sfora_ray.errors import InputError
from sfora_ray.folds import FittedFold
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.serving.packed import PackedFacts, PackedModel, prove_weights, write_packed
from tests.broken_inputs.conftest import Refused
from tests.broken_inputs.hostile import (
    absurd_header,
    empty,
    error_page,
    other_tensors,
    pickled,
    reaching_out,
    truncated,
)
from tests.tiny_runs import PANDAS_OF_MLFLOW

SPOILS = (truncated, absurd_header, reaching_out, other_tensors, pickled, empty, error_page)
MODEL = "members/m01-seed3/model.safetensors"


@pytest.fixture
def run(whole: RunFolder, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(whole.path, tmp_path / whole.path.name)))


def facts_of(run: RunFolder) -> PackedFacts:
    config = run.manifest().config
    members = tuple(f"{spec.folder_name}.safetensors" for spec in run.finished())
    return PackedFacts(
        name="tiny",
        model=config.model,
        input=config.input,
        channels=3,
        precision="fp32",
        members=members,
        fold="fold.safetensors",
        dim=8,
    )


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_members_weights(spoil: Callable[[Path], None], run: RunFolder) -> None:
    weights = [run.member(spec).model_path for spec in run.finished()]
    prove_weights(facts_of(run), weights)
    spoil(run.path / MODEL)
    with pytest.raises(InputError, match=r"m01-seed3/model\.safetensors: not readable as this member's weights"):
        prove_weights(facts_of(run), weights)
    assert not Path("owned").exists()


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_fold(spoil: Callable[[Path], None], run: RunFolder) -> None:
    spoil(run.fold_path("mean"))
    with pytest.raises(InputError, match=r"mean\.safetensors: not a readable fold"):
        FittedFold.load(run.fold_path("mean"))
    assert not Path("owned").exists()


@pytest.mark.parametrize("name", ["../m00.safetensors", "/etc/x.safetensors", "a/b.safetensors", "x.pkl", ""])
def test_a_packed_model_names_files_beside_it_alone(name: str, run: RunFolder, tmp_path: Path) -> None:
    facts, folder = facts_of(run), tmp_path / "packed"
    weights = [run.member(spec).model_path for spec in run.finished()]
    write_packed(folder, facts, weights, run.fold_path("mean"))
    assert PackedModel.load(folder).facts == facts
    values = json.loads((folder / "packed.json").read_text())
    (folder / "packed.json").write_text(json.dumps(values | {"members": [name]}))
    with pytest.raises(InputError, match=r"packed\.json: members: .*must be names of files beside packed\.json"):
        PackedModel.load(folder)


@pytest.mark.slow
@pytest.mark.filterwarnings(f"ignore:{PANDAS_OF_MLFLOW}")
def test_nothing_damaged_is_logged(run: RunFolder, refused: Refused, mlflow_store: None) -> None:
    """The tracker lies in the cache folder, which may change."""
    sync = ("mlflow", "sync", run.path.name, "--uri", f"sqlite:///{refused.place}/cache/mlflow.db")
    epochs = run.path / "members/m00-seed5/epochs.jsonl"
    lines = epochs.read_text()
    epochs.write_text("{garbage\n" + lines)
    refused(*sync, words=("m00-seed5/epochs.jsonl, line 1: not JSON",))
    epochs.write_text(lines)
    truncated(run.path / "members/m00-seed5/model.safetensors")
    words = ("m00-seed5/model.safetensors: not readable as this member's weights",)
    refused(*sync, words=words)
