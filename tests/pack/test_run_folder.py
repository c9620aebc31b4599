from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.errors import RunFolderError
from sfora_ray.files import read_json, write_json
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.run_folder import RunFolder
from tests.tiny import tiny_config


def create(tmp_path: Path, *overrides: str) -> RunFolder:
    return RunFolder.create(tiny_config(tmp_path / "photos", tmp_path, *overrides), weights="none")


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_folder_holds_the_plan(tmp_path: Path) -> None:
    run = create(tmp_path)
    config = tiny_config(tmp_path / "photos", tmp_path)
    assert run.path == tmp_path / "runs" / config.run_name
    assert RunFolder.open(run.path) == run
    manifest = run.manifest()
    assert (manifest.format, manifest.name, manifest.digest) == (1, "tiny", config.digest())
    assert manifest.config == config
    assert {"python", "torch", "numpy"} <= set(manifest.versions)
    assert [(spec.id, spec.seed) for spec in run.specs()] == [("m00", 5), ("m01", 3)]
    for spec in run.specs():
        assert MemberSpec.model_validate(read_json(run.member(spec).spec_path)) == spec
        assert run.member(spec).path.name == spec.folder_name
    assert (run.results(), run.finished(), run.dataset_digest()) == ({}, (), "")


def test_the_same_pack_is_not_made_twice(tmp_path: Path) -> None:
    run = create(tmp_path)
    before = everything(tmp_path)
    with pytest.raises(RunFolderError, match="has a run folder already") as caught:
        create(tmp_path)
    assert f"sfora-ray pack resume {run.path}" in str(caught.value)
    assert everything(tmp_path) == before


def test_another_config_has_another_folder(tmp_path: Path) -> None:
    assert create(tmp_path).path != create(tmp_path, "loss.tau=16").path


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "photos", tmp_path)
    (tmp_path / "runs" / config.run_name).mkdir(parents=True)
    (tmp_path / "runs" / config.run_name / "thesis.tex").write_text("precious")
    before = everything(tmp_path)
    with pytest.raises(RunFolderError, match="is not empty and holds no manifest"):
        create(tmp_path)
    assert everything(tmp_path) == before


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "photos", tmp_path)
    (tmp_path / "runs" / config.run_name).mkdir(parents=True)
    assert create(tmp_path).manifest_path.is_file()


def test_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no run folder here"):
        RunFolder.open(tmp_path)


def test_a_changed_config_does_not_resume(tmp_path: Path) -> None:
    run = create(tmp_path)
    manifest = read_json(run.manifest_path)
    manifest["config"]["loss"]["tau"] = 16
    write_json(run.manifest_path, manifest)
    with pytest.raises(RunFolderError, match="A changed config needs a run of its own"):
        RunFolder.open(run.path)


@pytest.mark.parametrize(("key", "value"), [("format", 2), ("versions", None), ("name", 7)])
def test_a_manifest_of_another_form_is_refused_with_its_place(tmp_path: Path, key: str, value: object) -> None:
    run = create(tmp_path)
    manifest = read_json(run.manifest_path)
    write_json(run.manifest_path, manifest | {key: value})
    with pytest.raises(RunFolderError, match=f"manifest.json: {key}: ") as caught:
        RunFolder.open(run.path)
    assert f"got {value!r}" in str(caught.value)


def test_a_summary_that_is_not_there_yet(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"no summary\.json yet"):
        create(tmp_path).summary()


def test_a_failed_member_is_not_among_the_finished(tmp_path: Path) -> None:
    run = create(tmp_path)
    first, second = run.specs()
    run.member(first).write_result(MemberResult(id="m00", seed=5, status="failed", reason="no luck"))
    run.member(second).write_result(MemberResult(id="m01", seed=3, status="finished", dataset_digest="abc"))
    assert run.finished() == (second,)
    assert run.dataset_digest() == "abc"
    assert json.loads(run.member(first).result_path.read_text())["status"] == "failed"


def test_a_member_with_fewer_epochs_than_now_is_not_finished(tmp_path: Path) -> None:
    run = create(tmp_path)
    first, second = run.specs()
    run.member(first).write_result(MemberResult(id="m00", seed=5, status="finished", epochs=2))
    run.member(second).write_result(MemberResult(id="m01", seed=3, status="finished"))
    assert run.finished() == (first, second)
    run.extend(tiny_config(tmp_path / "photos", tmp_path, "training.epochs=3"))
    assert RunFolder.open(run.path).finished() == ()
    run.member(first).write_result(MemberResult(id="m00", seed=5, status="finished", epochs=3))
    assert run.finished() == (run.specs()[0],)


def test_extending_twice_keeps_the_first_origin(tmp_path: Path) -> None:
    run = create(tmp_path)
    first = run.manifest()
    for overrides in (("seeds=[5, 3, 9]",), ("seeds=[5, 3, 9]", "training.epochs=4")):
        run.extend(tiny_config(tmp_path / "photos", tmp_path, *overrides))
    manifest = RunFolder.open(run.path).manifest()
    assert (manifest.digest, manifest.original_config()) == (first.digest, first.config)
    assert [spec.folder_name for spec in run.specs()] == ["m00-seed5", "m01-seed3", "m02-seed9"]


def test_a_lock_alone_does_not_take_a_folder(tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "photos", tmp_path)
    with run_lock(RunFolder.of(config).path):
        assert create(tmp_path).manifest_path.is_file()
