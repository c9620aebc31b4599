"""A whole pack whose run is in an object store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sfora_ray.cli.main import root
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import BusyError, RunFolderError
from sfora_ray.pack.lock import is_locked
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.storage import ObjectStore, WorkingCopy, held_lease
from sfora_ray.storage.lease import LeaseTimes
from sfora_ray.workflows.homes import new_run, read_run, written_run
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import resume_pack, run_or_resume, run_pack
from tests.storage.server import BUCKET, CREDENTIALS, S3Server, s3_server
from tests.tiny import tiny_config, tiny_values

EPOCHS = "training.epochs=6"
LOCAL = Launcher(local=True)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.variables.items():
            patch.setenv(name, value)
        for name in ("AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
            patch.delenv(name, raising=False)
        yield server


def silent(*_: object) -> None:
    pass


def run(config: PackConfig) -> RunFolder:
    return run_pack(config, LOCAL, watch=silent, say=silent)[0]


def learnt(folder: Path) -> dict[str, bytes]:
    """Return the files that hold what was learnt."""
    patterns = ("members/*/model.safetensors", "members/*/embeddings.*", "folds/*.safetensors")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for p in patterns for path in folder.glob(p)}


@pytest.fixture(scope="module")
def undisturbed(images: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    files = learnt(run(tiny_config(images, tmp_path_factory.mktemp("undisturbed"), EPOCHS)).path)
    assert len(files) == 2 * 3 + 4
    return files


def stored(s3: S3Server, prefix: str) -> dict[str, bytes]:
    return {key.removeprefix(prefix): s3.read(key) for key in s3.keys(prefix)}


@pytest.fixture(scope="module")
def whole(s3: S3Server, images: Path, tmp_path_factory: pytest.TempPathFactory) -> PackConfig:
    """A pack that was run on this machine into the store."""
    config = tiny_config(images, tmp_path_factory.mktemp("whole"), EPOCHS, f"output=s3://{BUCKET}/whole")
    assert run(config).path.is_relative_to(config.cache_dir)
    return config


def test_a_pack_in_a_store_is_the_same_pack(s3: S3Server, whole: PackConfig, undisturbed: dict[str, bytes]) -> None:
    there = stored(s3, f"whole/{whole.run_name}/")

    assert {name: there[name] for name in undisturbed} == undisturbed
    assert {"manifest.json", "summary.json", "report/index.html", "members/m00-seed5/result.json"} <= there.keys()
    assert not any(name.endswith((".lock", "run.lease", "stop")) for name in there)
    secret = CREDENTIALS["AWS_SECRET_ACCESS_KEY"].encode()
    assert not any(secret in content for content in there.values())
    with pytest.raises(RunFolderError, match="has a run folder already"):
        run(whole)


def test_a_run_is_read_where_it_has_never_been(whole: PackConfig) -> None:
    shutil.rmtree(whole.output_folder)

    seen = read_run(whole.run_address)

    assert {result.status for result in seen.results().values()} == {"finished"}
    assert seen.summary().pack.num_members == 2
    assert not list(seen.path.glob("members/*/checkpoint"))
    assert not list(seen.path.glob("members/*/embeddings*"))


def test_a_working_copy_is_the_run_that_it_copies(s3: S3Server, whole: PackConfig) -> None:
    path = read_run(whole.run_address).path
    s3.write(f"whole/{whole.run_name}/note.txt", b"1")

    with written_run(path) as folder:
        assert (folder.path / "note.txt").read_bytes() == b"1"
        assert s3.keys(f"whole/{whole.run_name}/run.lease")
        (folder.path / "note.txt").write_bytes(b"2")
    assert s3.read(f"whole/{whole.run_name}/note.txt") == b"2"
    assert not s3.keys(f"whole/{whole.run_name}/run.lease")


def test_commands_take_an_address(s3: S3Server, whole: PackConfig) -> None:
    runner = CliRunner()
    prefix = f"whole/{whole.run_name}/"

    status = runner.invoke(root, ["pack", "status", whole.run_address, "--json"])
    assert status.exit_code == 0, status.output
    assert json.loads(status.output)["pack"]["state"] == "finished"
    fold = runner.invoke(root, ["fold", whole.run_address, "--fold", "uncentred:4"], catch_exceptions=False)
    assert fold.exit_code == 0, fold.output
    assert s3.keys(f"{prefix}folds/uncentred:4") or s3.keys(f"{prefix}folds/uncentred")
    s3.client.delete_object(Bucket=BUCKET, Key=f"{prefix}report/index.html")
    report = runner.invoke(root, ["report", whole.run_address], catch_exceptions=False)
    assert report.exit_code == 0, report.output
    assert s3.keys(f"{prefix}report/index.html")


def wait_for_checkpoints(s3: S3Server, prefix: str, process: subprocess.Popen[bytes]) -> None:
    while not any("/checkpoint/" in key and key.endswith("loop.json") for key in s3.keys(prefix)):
        assert process.poll() is None, "the pack ended before it could be killed"
        time.sleep(0.1)


def test_a_driver_that_was_killed_is_succeeded_on_another_machine(
    s3: S3Server, images: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    values = {**tiny_values(images, tmp_path / "one"), "output": f"s3://{BUCKET}/killed"}
    values["training"] = {**values["training"], "epochs": 6}
    path = tmp_path / "pack.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    command = [sys.executable, "-c", "from sfora_ray.cli.main import main; main()", "pack", "run", str(path), "--local"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        wait_for_checkpoints(s3, "killed/", process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    other = tiny_config(images, tmp_path / "two", EPOCHS, f"output=s3://{BUCKET}/killed")

    folder, summary = run_or_resume(other, LOCAL, watch=silent, say=silent)

    assert folder.path.is_relative_to(tmp_path / "two")
    assert summary.pack.num_members == 2
    there = stored(s3, f"killed/{other.run_name}/")
    assert {name: there[name] for name in undisturbed} == undisturbed
    starts = [
        event.step for spec in folder.specs() for event in folder.member(spec).attempts() if event.event == "started"
    ]
    assert any(step > 0 for step in starts)
    assert "run.lease" not in there


def test_one_process_writes_a_run(s3: S3Server, images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, f"output=s3://{BUCKET}/busy")
    holding = held_lease(ObjectStore(config.run_address), LeaseTimes(renew=0.2))
    with holding, pytest.raises(BusyError, match="is being written by process"):
        run(config)
    assert s3.keys("busy/") == []


def test_a_store_that_is_away_does_not_hold_up_an_end(s3: S3Server, images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, f"output=s3://{BUCKET}/away")
    left: list[float] = []

    def work() -> None:
        with new_run(config) as folder:
            s3.always = (503, "")
            folder.path.mkdir(parents=True, exist_ok=True)
            (folder.path / "note.txt").write_text("1")
            time.sleep(3.0)  # until the thread that sends it tries again and again
            left.append(time.monotonic())
            raise KeyError

    try:
        with pytest.raises(KeyError):
            work()
    finally:
        s3.always = None
    assert time.monotonic() - left[0] < 5


def test_the_whole_run_is_read_without_being_in_anybodys_way(
    whole: PackConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(whole.output_folder)
    seen: list[bool] = []
    pull = WorkingCopy.pull

    def look(copy: WorkingCopy, **patterns: Any) -> int:
        seen.append(is_locked(copy.folder))
        return pull(copy, **patterns)

    monkeypatch.setattr(WorkingCopy, "pull", look)
    folder = read_run(whole.run_address, whole=True)

    assert seen == [True, False]
    assert len(list(folder.path.glob("members/*/embeddings.*"))) == 4
    assert len(list(folder.path.glob("members/*/model.safetensors"))) == 2


def test_there_is_no_run(s3: S3Server, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=f"s3://{BUCKET}/none/x: no run here"):
        resume_pack(f"s3://{BUCKET}/none/x", LOCAL, watch=silent, say=silent)
