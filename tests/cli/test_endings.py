"""Ends other than well: 1 where the work failed, 130 where it was interrupted."""

from pathlib import Path

import pytest

import sfora_ray.cli.pack
from tests.cli.conftest import Call
from tests.tiny import tiny_values
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
