"""An interrupted member ends with the bits of one that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfora_ray.training.member as member_module
from sfora_ray.config.member import MemberResult
from sfora_ray.training.announcer import Announcer
from sfora_ray.training.epoch import EpochOutcome, train_epoch
from sfora_ray.training.member import train_member
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.parts import Parts
from sfora_ray.training.worker import Worker
from tests.tiny import tiny_config, tiny_spec

SETTINGS = {
    "hist": ["recipe={name: plain}"],
    "herd": ["model.frozen_batch_norm=true"],
    "proxy_anchor": ["loss={name: proxy_anchor, init: unit}", "recipe={name: plain}"],
    "proxy_anchor_distill": ["loss={name: proxy_anchor}"],
    "herd_bf16_validation": ["training.precision=bf16", "selection.split=validation", "optimizer.name=adam"],
}
STATE = Path("checkpoint/epoch-00004/state.safetensors")


def train(images: Path, folder: Path, overrides: list[str], epochs: int = 4) -> MemberResult:
    config = tiny_config(images, folder.parent, *overrides, f"training.epochs={epochs}")
    return train_member(tiny_spec(config), MemberFolder(folder), Worker.alone())


def bits(folder: Path) -> dict[str, bytes]:
    names = [Path("model.safetensors"), Path("embeddings.test.npz"), Path("embeddings.train.npz"), STATE]
    return {str(name): (folder / name).read_bytes() for name in names}


def losses(folder: Path) -> list[dict[str, float]]:
    return [record.loss for record in MemberFolder(folder).epochs()]


@pytest.fixture(params=SETTINGS)
def overrides(request: pytest.FixtureRequest) -> list[str]:
    return SETTINGS[str(request.param)]


def train_and_kill(
    monkeypatch: pytest.MonkeyPatch, fatal: int, images: Path, folder: Path, overrides: list[str]
) -> None:
    """Train until the steps of epoch ``fatal`` are done, then die before anything of it is recorded."""

    def dying(parts: Parts, epoch: int, announcer: Announcer) -> EpochOutcome:
        outcome = train_epoch(parts, epoch, announcer)
        if epoch == fatal:
            raise KeyboardInterrupt
        return outcome

    with monkeypatch.context() as patch:
        patch.setattr(member_module, "train_epoch", dying)
        with pytest.raises(KeyboardInterrupt):
            train(images, folder, overrides)


def test_killed_extended_and_undisturbed_members_are_equal(
    images: Path, tmp_path: Path, overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = train(images, tmp_path / "straight", overrides)
    train(images, tmp_path / "extended", overrides, epochs=2)
    extended = train(images, tmp_path / "extended", overrides)
    train_and_kill(monkeypatch, 3, images, tmp_path / "killed", overrides)
    killed = train(images, tmp_path / "killed", overrides)
    for name, result in (("extended", extended), ("killed", killed)):
        assert bits(tmp_path / name) == bits(tmp_path / "straight")
        assert losses(tmp_path / name) == losses(tmp_path / "straight")
        assert (result.metrics, result.best_epoch) == (straight.metrics, straight.best_epoch)
    assert [record.epoch for record in MemberFolder(tmp_path / "killed").epochs()] == [1, 2, 3, 4]


def test_a_torn_checkpoint_is_passed_over(images: Path, tmp_path: Path) -> None:
    train(images, tmp_path / "straight", [])
    train(images, tmp_path / "torn", [], epochs=2)
    newest = tmp_path / "torn/checkpoint/epoch-00002/state.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    train(images, tmp_path / "torn", [])
    assert bits(tmp_path / "torn") == bits(tmp_path / "straight")


def test_epochs_recorded_after_the_last_checkpoint_are_trained_again(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(images, tmp_path / "straight", [])
    sparse = ["training.checkpoint_every=2"]
    train_and_kill(monkeypatch, 4, images, tmp_path / "sparse", sparse)
    assert [record.epoch for record in MemberFolder(tmp_path / "sparse").epochs()] == [1, 2, 3]
    train(images, tmp_path / "sparse", sparse)
    assert bits(tmp_path / "sparse") == bits(tmp_path / "straight")
    assert [record.epoch for record in MemberFolder(tmp_path / "sparse").epochs()] == [1, 2, 3, 4]


def test_a_finished_member_is_only_embedded_again(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(images, tmp_path / "member", [])
    before = bits(tmp_path / "member")
    monkeypatch.setattr(member_module, "train_epoch", None)
    train(images, tmp_path / "member", [])
    assert bits(tmp_path / "member") == before


def test_only_the_last_two_checkpoints_are_kept(images: Path, tmp_path: Path) -> None:
    train(images, tmp_path / "member", [])
    kept = sorted(path.name for path in (tmp_path / "member/checkpoint").glob("epoch-*"))
    assert kept == ["epoch-00003", "epoch-00004"]
