"""Ends other than well: 1 where the work failed, 130 where it was interrupted, by whichever signal."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import mlflow
import pytest

import sfora_ray.cli.pack
from sfora_ray.pack.run_folder import RunFolder
from tests.cli.conftest import Call
from tests.tiny import tiny_config, tiny_values
from tests.tiny_runs import write_config


def test_no_member_finished_ends_with_1_and_each_reason(images: Path, tmp_path: Path, call: Call) -> None:
    config = write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))
    ended = call("pack", "run", config, "--local", "seeds=[0]", "optimizer.lr=1e30", "schedule.warmup_epochs=0")
    assert ended.code == 1
    assert "error: no member finished: m00 (seed 0): " in ended.err
    assert "the loss is nan" in ended.err


def test_ctrl_c_ends_with_130(images: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sfora_ray.cli.pack, "run_pack", interrupted)
    config = write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))
    ended = call("pack", "run", config)
    assert (ended.code, ended.err.strip()) == (130, "interrupted")


@pytest.mark.usefixtures("mlflow_store")
def test_sigterm_stops_the_member_and_kills_the_runs(images: Path, tmp_path: Path) -> None:
    """What ``ray job stop``, a scheduler or a container does to a job."""
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    overrides = ["seeds=[0]", "training.epochs=100000", "training.evaluate_every=100000", f"tracking={{uri: '{uri}'}}"]
    run = RunFolder(tmp_path / "runs" / tiny_config(images, tmp_path, *overrides).run_name)
    config = write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))
    program = "from sfora_ray.cli.main import main; main()"
    command = [sys.executable, "-c", program, "pack", "run", str(config), "--local", *overrides]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until_it_trains(run, process, tmp_path / "log")
        children = children_of(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 130, (tmp_path / "log").read_text()
    finally:
        process.kill()
    assert (tmp_path / "log").read_text().rstrip().endswith("interrupted")
    assert children
    wait_until_gone(children)
    states = {
        one.data.tags["sfora.kind"]: one.info.status for one in mlflow.MlflowClient(tracking_uri=uri).search_runs(["1"])
    }
    assert states == {"pack": "KILLED", "member": "KILLED"}


def wait_until_it_trains(run: RunFolder, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if run.manifest_path.exists() and len(run.member(run.specs()[0]).epochs()) > 1:
            return
        assert process.poll() is None, log.read_text()
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def wait_until_gone(processes: list[int]) -> None:
    for _ in range(100):
        left = [process for process in processes if lives(process)]
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(left)


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(parent: int) -> list[int]:
    """Return the processes below another, of which ``/proc`` tells on Linux."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("no /proc")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found
