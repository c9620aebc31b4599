from pathlib import Path

import pytest

from sfora_ray.errors import ConfigError
from tests.tiny import tiny_config


def test_a_folder_holds_the_run_folders(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tiny_config(images, tmp_path, "output=~/runs")
    assert config.output_folder == tmp_path / "runs"
    assert config.run_address == ""


def test_a_store_has_working_copies_in_the_cache(images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, "output=s3://bucket/packs?region=eu-west-1")
    assert config.output_folder == tmp_path / "cache/stores/runs/bucket/packs"
    assert config.run_address == f"s3://bucket/packs/{config.run_name}?region=eu-west-1"
    assert config.run_name == tiny_config(images, tmp_path).run_name


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("s3a://bucket/a", "output: is of no known scheme. Did you mean 's3'?"),
        ("s3://", "output: must name a bucket"),
        ("s3://key:hunter2@bucket/a", "output: must hold no credentials"),
        ("s3://bucket/a?secret_key=hunter2", "output: has the setting 'secret_key'"),
        ("s3://bucket/a/../b", "output: must have no '.', '..' or empty part"),
        ("''", "output: must name a folder"),
    ],
)
def test_a_wrong_output_is_a_problem_of_the_config(images: Path, tmp_path: Path, output: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tiny_config(images, tmp_path, f"output={output}")
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)
