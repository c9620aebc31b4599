"""A sweep of members with two workers each, on a Ray of its own with a dashboard: killed in the middle and resumed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from sfora_ray.config.load_sweep import load_sweep
from sfora_ray.sweep.folder import SweepFolder
from tests.tiny import tiny_values

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PROGRAM = "from sfora_ray.cli.main import main; main()"
RATES = [1e-3, 1e30]


def write_sweep(images: Path, place: Path) -> Path:
    pack = tiny_values(images, place)
    pack["training"] = {"epochs": 3, "evaluate_every": 1}
    pack["resources"] = {"workers_per_member": 2}
    pack["model"]["frozen_batch_norm"] = True
    values = {
        "name": "nested",
        "pack": pack,
        "space": {"optimizer.lr": {"distribution": "choice", "values": RATES}},
        "searcher": {"name": "grid"},
        "scheduler": {"name": "asha", "grace_epochs": 1, "reduction": 2},
    }
    path = place / "sweep.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def start(place: Path, *arguments: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_ADDRESS": "local"}
    with (place / "log").open("ab") as log:
        command = [sys.executable, "-c", PROGRAM, "sweep", *map(str, arguments)]
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def test_a_sweep_that_is_killed_goes_on_to_its_end(images: Path, tmp_path: Path) -> None:
    config = write_sweep(images, tmp_path)
    sweep = SweepFolder.of(load_sweep(config))
    process = start(tmp_path, "run", config)
    end = time.monotonic() + 400
    while not (sweep.manifest_path.exists() and any(trial.rounds for trial in sweep.trials())):
        assert process.poll() is None, (tmp_path / "log").read_text()
        assert time.monotonic() < end
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (first,) = [trial for trial in sweep.trials() if trial.rounds]

    resumed = start(tmp_path, "resume", sweep.path)
    assert resumed.wait(500) == 0, (tmp_path / "log").read_text()
    trials = sweep.trials()
    assert [trial.values["optimizer.lr"] for trial in trials] == RATES
    assert [trial.end is not None and trial.end.status for trial in trials] == ["finished", "non_finite"]
    standing = next(trial for trial in trials if trial.number == first.number).rounds
    assert standing[: len(first.rounds)] == first.rounds
    ranking = json.loads(sweep.ranking_path.read_text())
    assert [trial["number"] for trial in ranking["trials"]][-1] == RATES.index(1e30)
    assert "best    t000" in (tmp_path / "log").read_text()
