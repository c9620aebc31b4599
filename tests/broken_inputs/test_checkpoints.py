"""Checkpoints are not input: a damaged one is passed over, and the member still ends with the same bits."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.boundary import member_result
from sfora_ray.training.worker import Worker
from tests.broken_inputs.hostile import absurd_header, empty, error_page, other_tensors, pickled, truncated


def one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def wrong_digest(path: Path) -> None:
    text = path.with_name("loop.json").read_text()
    path.with_name("loop.json").write_text(json.dumps(json.loads(text) | {"sha256": "0" * 64}))


def no_loop(path: Path) -> None:
    truncated(path.with_name("loop.json"))


def other_loop(path: Path) -> None:
    path.with_name("loop.json").write_text("[1, 2]")


def no_state(path: Path) -> None:
    path.unlink()


SPOILS = (
    one_bit,
    truncated,
    empty,
    absurd_header,
    other_tensors,
    pickled,
    error_page,
    wrong_digest,
    no_loop,
    other_loop,
    no_state,
)


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("damaged", [1, 2], ids=["newest", "all"])
def test_a_damaged_checkpoint_costs_time_and_no_bit(
    spoil: Callable[[Path], None],
    damaged: int,
    whole: RunFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    run = RunFolder(Path(shutil.copytree(whole.path, tmp_path / whole.path.name)))
    spec = run.specs()[0]
    folder = run.member(spec)
    expected = folder.model_path.read_bytes()
    for path in (folder.result_path, folder.model_path):
        path.unlink()
    states = sorted(folder.checkpoint_path.glob("step-*/state.safetensors"))
    assert len(states) == 2
    for path in states[-damaged:]:
        spoil(path)
    assert member_result(spec, folder.path, Worker.alone(torch.device("cpu"))).status == "finished"
    assert folder.model_path.read_bytes() == expected
    warned = [record.message for record in caplog.records if "damaged" in record.message]
    assert len(warned) >= damaged
    assert states[-1].parent.name in warned[0]
    assert not Path("owned").exists()
