from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.tiny import tiny_values
from tests.tiny_runs import write_config


@pytest.fixture(autouse=True)
def _nobody_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def test_one_line_each_with_what_to_do_and_exit_code_1(images: Path, tmp_path: Path, call: Call) -> None:
    config = write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))
    ended = call("doctor", config, "data.root=nowhere")
    assert ended.code == 1
    *lines, counts = ended.out.splitlines()
    level_of = {line[8:22].strip(): line[:8].strip() for line in lines}
    assert level_of["data set"] == level_of["Ray"] == "RED"
    assert level_of["weights"] == "ok"
    assert all(" -> " in line for line in lines if not line.startswith("ok"))
    assert counts.startswith(f"{len(lines)} lines: ")
    assert f"{list(level_of.values()).count('RED')} red" in counts


def test_nothing_red_is_exit_code_0(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    from sfora_ray.cli import doctor
    from sfora_ray.workflows.checks.finding import Finding

    found = [Finding("Ray", "green", "there"), Finding("/dev/shm", "yellow", "[small]", "Enlarge it")]
    monkeypatch.setattr(doctor, "doctor", lambda *_, **__: (finding for finding in found))
    ended = call("doctor")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "ok      Ray           there",
        "warning /dev/shm      [small] -> Enlarge it",
        "2 lines: 1 green, 1 yellow",
    ]


def test_a_config_that_says_nothing_is_exit_code_2(tmp_path: Path, call: Call) -> None:
    ended = call("doctor", tmp_path / "absent.yaml")
    assert ended.code == 2
    assert "absent.yaml" in ended.err
    assert ended.out == ""
