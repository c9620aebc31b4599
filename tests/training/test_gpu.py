"""What only a CUDA device can show; skipped, with the reason, where there is none."""

from pathlib import Path

import pytest
import torch

from sfora_ray.config.pack import ResourceOptions
from sfora_ray.training.environment import worker_environment
from sfora_ray.training.member import train_member
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.worker import Worker
from tests.tiny import tiny_config, tiny_spec

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.fixture(autouse=True)
def _fixed_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in every worker: cuBLAS needs it before it computes the same bits twice."""
    for name, value in worker_environment(ResourceOptions(gpus_per_worker=1)).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_member_trains_on_the_device_twice_to_the_same_bits(images: Path, tmp_path: Path, precision: str) -> None:
    config = tiny_config(images, tmp_path, f"training.precision={precision}", "training.channels_last=true")
    folders = [MemberFolder(tmp_path / name) for name in ("first", "second")]
    for folder in folders:
        result = train_member(tiny_spec(config), folder, Worker.alone())
        assert result.device == torch.cuda.get_device_name(0)
        assert result.metrics["recall_at_1"] > 1 / 12
    first, second = (folder.embeddings_path("test").read_bytes() for folder in folders)
    assert first == second


def test_scores_do_not_depend_on_the_device(images: Path, tmp_path: Path) -> None:
    from sfora_ray.arrays import EmbeddingTable
    from sfora_ray.retrieval import score

    folder = MemberFolder(tmp_path / "member")
    train_member(tiny_spec(tiny_config(images, tmp_path)), folder, Worker.alone())
    table = EmbeddingTable.load(folder.embeddings_path("test"))
    on_cpu, on_gpu = (score(table.embeddings, table.labels, nmi=False, device=device) for device in ("cpu", "cuda"))
    assert on_cpu.metrics() == on_gpu.metrics()
