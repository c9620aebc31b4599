"""The doctor from beginning to end, with Ray's address leading nowhere; tests/cluster has it with a cluster."""

from pathlib import Path

import pytest

from sfora_ray.config.pack import PackConfig
from sfora_ray.workflows.checks.finding import Finding
from sfora_ray.workflows.doctor import doctor
from tests.tiny import tiny_config

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_ADDRESS", NOBODY)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def examined(config: PackConfig | None) -> dict[str, Finding]:
    return {finding.area: finding for finding in doctor(config, say=lambda _: None)}


def test_a_good_config_on_a_good_machine(images: Path, tmp_path: Path) -> None:
    findings = examined(tiny_config(images, tmp_path))
    assert list(findings) == [
        "packages",
        "CUDA",
        "output",
        "cache_dir",
        "data set",
        "weights",
        "MLflow",
        "Ray token",
        "Ray",
    ]
    for area in ("output", "cache_dir", "data set", "weights", "MLflow"):
        assert findings[area].level != "red", findings[area]
    assert findings["data set"].found == "image_folder: train 6 classes, 48 images; test 6 classes, 48 images"
    assert not (tmp_path / "runs").exists()


def test_an_address_of_nobody_is_told_with_the_way_out() -> None:
    finding = examined(None)["Ray"]
    assert finding.level == "red"
    assert NOBODY in finding.found
    assert "ray start --head" in finding.advice


def test_everything_wrong_at_once_is_told_at_once(images: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    findings = examined(
        tiny_config(
            tmp_path / "no-images",
            tmp_path,
            f"output={tmp_path}/file/runs",
            f"cache_dir={tmp_path}/file/cache",
            "tracking={name: mlflow, uri: 'http://127.0.0.1:1'}",
            "model.backbone={name: resnet18, weights: no-such-file.safetensors}",
        )
    )
    red = {area for area, finding in findings.items() if finding.level == "red"}
    assert red >= {"output", "cache_dir", "data set", "weights", "MLflow", "Ray"}
    assert "no-images" in findings["data set"].found
    assert "no-such-file.safetensors" in findings["weights"].found
    assert "mlflow server" in findings["MLflow"].advice
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_a_config_only_the_machine_is_looked_at() -> None:
    findings = examined(None)
    assert list(findings) == ["packages", "CUDA", "MLflow", "Ray token", "Ray"]
    assert "MLFLOW_TRACKING_URI is not set" in findings["MLflow"].found


@pytest.mark.parametrize("uri", ["file:///tmp/mlruns", "./mlruns", "http://127.0.0.1:1"])
def test_the_tracking_uri_of_the_environment_is_looked_at(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    finding = examined(None)["MLflow"]
    assert finding.level == "red"
    assert uri in finding.found
    assert finding.advice


def test_a_password_in_the_environment_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:s3cret@127.0.0.1:1")
    finding = examined(None)["MLflow"]
    assert finding.level == "red"
    assert "s3cret" not in str(finding)
