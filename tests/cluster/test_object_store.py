"""Members on a cluster whose run is in an object store that only the driver's environment tells the way to."""

from pathlib import Path

import pytest
import ray

from sfora_ray.storage import storage_environment
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import run_pack
from tests.storage.server import BUCKET, CREDENTIALS, s3_server
from tests.tiny import tiny_config
from tests.tiny_runs import train_here

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]


@ray.remote(num_cpus=0)
def seen_by_a_task() -> dict[str, str]:
    return storage_environment("s3://any")


def test_a_member_trains_into_the_store(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ray.get(seen_by_a_task.remote(), timeout=60) == {}
    expected = train_here(tiny_config(images, tmp_path / "alone", "seeds=[5]"))
    spec = expected.specs()[0]
    with s3_server() as s3:
        for name, value in s3.variables.items():
            monkeypatch.setenv(name, value)
        config = tiny_config(images, tmp_path / "there", "seeds=[5]", f"output=s3://{BUCKET}/ray")

        run, _ = run_pack(config, Launcher(local=False), watch=lambda _: None, say=lambda _: None)

        prefix = f"ray/{run.path.name}/"
        there = {key.removeprefix(prefix): s3.read(key) for key in s3.keys(prefix)}
    member = f"members/{spec.folder_name}"
    for name in ("embeddings.train.npz", "embeddings.test.npz", "model.safetensors"):
        assert there[f"{member}/{name}"] == (expected.member(spec).path / name).read_bytes()
    assert "summary.json" in there
    secret = CREDENTIALS["AWS_SECRET_ACCESS_KEY"].encode()
    assert not any(secret in content for content in there.values())


@pytest.mark.long
def test_two_workers_of_a_member_share_the_store(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parallel = ("seeds=[5]", "resources.workers_per_member=2")
    with s3_server() as s3:
        for name, value in s3.variables.items():
            monkeypatch.setenv(name, value)
        config = tiny_config(images, tmp_path, *parallel, f"output=s3://{BUCKET}/two")

        run, summary = run_pack(config, Launcher(local=False), watch=lambda _: None, say=lambda _: None)

        names = [Path(key).name for key in s3.keys(f"two/{run.path.name}/members/")]
    assert summary.pack.num_members == 1
    assert "worker.log" in names
    assert "worker-1.log" not in names
