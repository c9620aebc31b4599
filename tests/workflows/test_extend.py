"""A pack that is extended is the pack that was run so from the beginning."""

import functools
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

import sfora_ray.workflows.extend
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import BusyError, ConfigError, InputError
from sfora_ray.files import read_json, write_json
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import Summary
from sfora_ray.workflows.extend import extend_pack
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.refold import refold
from sfora_ray.workflows.run_pack import resume_pack, run_pack
from tests.tiny import tiny_config
from tests.tiny_runs import PANDAS_OF_MLFLOW, train_here

pytestmark = pytest.mark.filterwarnings(f"ignore:{PANDAS_OF_MLFLOW}")

SHORT = ("seeds=[5, 3]", "training.epochs=3", "training.evaluate_every=2")
LONG = ("seeds=[5, 3, 7]", "training.epochs=5", "training.evaluate_every=2")
"""Epoch 3 is evaluated in the short pack only, for it is the last there: it may not be selected in the long one."""


def silent(_: object) -> None:
    """Watch and hear nothing."""


def extend(run: RunFolder, *, seeds: tuple[int, ...] = (), epochs: int | None = None) -> tuple[RunFolder, Summary]:
    return extend_pack(run.path, Launcher(local=True), seeds=seeds, epochs=epochs, watch=silent, say=silent)


@dataclass(frozen=True)
class Extended:
    """A pack of two members and three epochs, extended by a fold, then a seed, then epochs."""

    run: RunFolder
    uri: str
    first: PackConfig
    untouched: Mapping[Path, int]
    after_seeds: Summary


@pytest.fixture(scope="module")
def extended(mlflow_store: None, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Extended:
    place = tmp_path_factory.mktemp("extended")
    uri = f"sqlite:///{place}/mlflow.db"
    first = tiny_config(images, place, *SHORT, f"tracking={{uri: '{uri}'}}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_OF_MLFLOW)
        run = train_here(first)
        refold(run, ("uncentred:4",), say=silent)
        before = times(run, 2)
        _, after_seeds = extend(run, seeds=(7,))
        untouched = {path: time for path, time in times(run, 2).items() if before.get(path) == time}
        assert untouched == before
        extend(run, epochs=5)
    return Extended(run, uri, first, untouched, after_seeds)


@pytest.fixture(scope="module")
def straight(images: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = train_here(tiny_config(images, tmp_path_factory.mktemp("straight"), *LONG))
    refold(run, ("uncentred:4",), say=silent)
    return run


def times(run: RunFolder, members: int) -> dict[Path, int]:
    """Return when each file of the first members was written, but for the specs."""
    return {
        path: path.stat().st_mtime_ns
        for spec in run.specs()[:members]
        for path in run.member(spec).path.rglob("*")
        if path.is_file() and path.name != "spec.json"
    }


def test_new_seeds_leave_the_old_members_alone(extended: Extended) -> None:
    assert {path.parent.name for path in extended.untouched} >= {"m00-seed5", "m01-seed3"}
    assert [member.seed for member in extended.after_seeds.members] == [5, 3, 7]
    assert [point.size for point in extended.after_seeds.pack_curve] == [1, 2, 3]


@pytest.mark.parametrize("file", ["embeddings.train.npz", "embeddings.test.npz", "model.safetensors"])
def test_the_members_are_those_of_the_longer_pack(extended: Extended, straight: RunFolder, file: str) -> None:
    for spec in straight.specs():
        name = f"members/{spec.folder_name}/{file}"
        assert (extended.run.path / name).read_bytes() == (straight.path / name).read_bytes(), name


def test_so_are_the_folds(extended: Extended, straight: RunFolder) -> None:
    names = {path.name for path in straight.folds_path.iterdir()}
    assert names == {path.name for path in extended.run.folds_path.iterdir()}
    assert "uncentred-4.safetensors" in names
    for name in names:
        assert (extended.run.folds_path / name).read_bytes() == (straight.folds_path / name).read_bytes(), name


def test_and_the_summary(extended: Extended, straight: RunFolder) -> None:
    assert comparable(extended.run.summary()) == comparable(straight.summary())


def comparable(summary: Summary) -> dict[str, Any]:
    """Return a summary without its digest and without what a clock says."""
    plain = summary.model_dump(mode="json")
    plain["pack"].pop("digest")
    for member in plain["members"]:
        member.pop("train_seconds")
        member.pop("images_per_second")
    return plain


def test_the_folder_keeps_its_name_and_remembers_how_it_began(extended: Extended) -> None:
    run = RunFolder.open(extended.run.path)
    manifest = run.manifest()
    assert run.path.name == extended.first.run_name
    assert manifest.digest == extended.first.digest()
    assert manifest.original_config() == extended.first
    assert (manifest.config.seeds, manifest.config.training.epochs) == ((5, 3, 7), 5)
    for spec in run.specs():
        assert read_json(run.member(spec).spec_path) == spec.model_dump(mode="json")


def test_mlflow_gained_a_child_under_the_same_parent(extended: Extended) -> None:
    client = MlflowClient(tracking_uri=extended.uri)
    runs = client.search_runs(["1"])
    (parent,) = [run for run in runs if run.data.tags["sfora.kind"] == "pack"]
    members = [run for run in runs if run.data.tags["sfora.kind"] == "member"]
    assert sorted(run.data.tags["sfora.seed"] for run in members) == ["3", "5", "7"]
    assert {run.data.tags["mlflow.parentRunId"] for run in members} == {parent.info.run_id}
    assert {run.info.status for run in runs} == {"FINISHED"}
    for member in members:
        epochs = [point.step for point in client.get_metric_history(member.info.run_id, "loss")]
        assert epochs == [1, 2, 3, 4, 5]


@pytest.fixture
def copy(extended: Extended, tmp_path: Path) -> RunFolder:
    """A copy of the extended pack that tells no tracker."""
    path = Path(shutil.copytree(extended.run.path, tmp_path / extended.run.path.name))
    manifest = read_json(path / "manifest.json")
    manifest["config"]["tracking"] = {"name": "none"}
    write_json(path / "manifest.json", manifest)
    return RunFolder.open(path)


def test_resuming_an_extended_pack_trains_nothing_and_keeps_added_folds(copy: RunFolder) -> None:
    before = times(copy, 3)
    _, summary = resume_pack(copy.path, Launcher(local=True), watch=silent, say=silent)
    assert times(copy, 3) == before
    assert "uncentred-4" in {fold.name for fold in summary.folds}


def test_a_changed_origin_does_not_open(copy: RunFolder) -> None:
    manifest = read_json(copy.manifest_path)
    manifest["origin"]["epochs"] = 4
    write_json(copy.manifest_path, manifest)
    with pytest.raises(InputError, match="A changed config needs a run of its own"):
        RunFolder.open(copy.path)


def test_results_of_an_earlier_version_count_as_first_run(copy: RunFolder) -> None:
    (first, *others) = copy.specs()
    result = read_json(copy.member(first).result_path)
    write_json(copy.member(first).result_path, result | {"epochs": 0})
    assert copy.finished() == tuple(others)


def test_a_job_with_the_first_config_keeps_the_extension(copy: RunFolder, extended: Extended) -> None:
    config = extended.first.model_copy(update={"min_members": 2})
    copy.adopt(config)
    adopted = RunFolder.open(copy.path).manifest()
    assert (adopted.config.seeds, adopted.config.training.epochs, adopted.config.min_members) == ((5, 3, 7), 5, 2)


@pytest.mark.parametrize(
    ("seeds", "epochs", "said"),
    [
        ((), None, "nothing to extend it by"),
        ((8, 3, 5), None, "these members already, got 3, 5"),
        ((8, 8), None, "must not repeat a seed"),
        ((-1,), None, "seeds"),
        ((), 5, "must be above the 5"),
        ((8,), 4, "must be above the 5"),
        ((), 0, "must be above the 5"),
    ],
)
def test_refusals_change_nothing(copy: RunFolder, seeds: tuple[int, ...], epochs: int | None, said: str) -> None:
    before = everything(copy.path)
    with pytest.raises(ConfigError, match=said):
        extend(copy, seeds=seeds, epochs=epochs)
    assert everything(copy.path) == before


def test_a_cosine_schedule_takes_no_epochs(images: Path, tmp_path: Path) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path, "schedule.name=cosine"), "none")
    before = everything(run.path)
    with pytest.raises(ConfigError, match="cosine schedule depend on the number of epochs"):
        extend(run, seeds=(7,), epochs=3)
    assert everything(run.path) == before


def test_a_pack_that_is_being_written_is_busy(copy: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(copy.path)
    at_once = functools.partial(run_lock, patience_seconds=0)
    monkeypatch.setattr(sfora_ray.workflows.extend, "run_lock", at_once)
    with run_lock(copy.path), pytest.raises(BusyError, match="is being written by process"):
        extend(copy, seeds=(8,))
    assert everything(copy.path) == before


def everything(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("overrides", "options"),
    [
        (("seeds=[5, 3, 7, 8]",), "--seeds 8`"),
        (("training.epochs=6",), "--epochs 6`"),
        (("seeds=[3, 5, 7, 1, 2]", "training.epochs=7"), "--seeds 1,2 --epochs 7`"),
        (("seeds=[5, 3]",), None),
        (("training.epochs=4",), None),
        (("seeds=[5, 3, 7, 8]", "loss.tau=16"), None),
    ],
)
def test_a_longer_pack_is_told_what_it_could_extend(
    straight: RunFolder, images: Path, overrides: tuple[str, ...], options: str | None
) -> None:
    folder = straight.path.parents[1]
    # A server that is not there ends the new pack before it writes anything.
    config = tiny_config(images, folder, *LONG, *overrides, "tracking={uri: 'http://127.0.0.1:9'}")
    said: list[str] = []
    with pytest.raises(InputError):
        run_pack(config, Launcher(local=True), watch=silent, say=said.append)
    notes = [text for text in said if "pack extend" in text]
    assert len(notes) == (options is not None)
    if options is not None:
        assert f"sfora-ray pack extend {straight.path} {options}" in notes[0]
