"""A member that was interrupted, wherever that was, ends with the bits of one that was not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import sfora_ray.training.ongoing as ongoing_module
from sfora_ray.errors import RunFolderError
from sfora_ray.training.member_folder import MemberFolder
from tests.tiny import STEPS_PER_EPOCH
from tests.training.interrupted import (
    EPOCHS,
    STEPS,
    bits,
    checkpoints,
    losses,
    resumed_from,
    train,
    train_until_killed,
)

SETTINGS = {
    "hist": ["recipe={name: plain}"],
    "herd": ["model.frozen_batch_norm=true"],
    "proxy_anchor": ["loss={name: proxy_anchor, init: unit}", "recipe={name: plain}"],
    "proxy_anchor_distill": ["loss={name: proxy_anchor}"],
    "memory_distilled": [
        "loss={name: contrastive}",
        "recipe={name: distillation, momentum: 0.9, base: {name: memory, capacity: 30, warmup_steps: 3}}",
    ],
    "adversarial_mining_weighted": [
        "loss={name: triplet}",
        "recipe={name: adversarial, hidden: [8]}",
        "sampler={name: mining_weighted, batch_size: 12, subset: 30}",
    ],
    "two_streams_n_pairs": [
        "loss={name: multi_similarity}",
        "recipe={name: two_stream, reference: own}",
        "sampler={name: n_pairs, batch_size: 12}",
    ],
    "herd_bf16_validation": ["training.precision=bf16", "selection.split=validation", "optimizer.name=adam"],
}


@pytest.fixture(params=SETTINGS)
def overrides(request: pytest.FixtureRequest) -> list[str]:
    return SETTINGS[str(request.param)]


@pytest.fixture(scope="module")
def straight(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed member of the plain tiny pack."""
    folder = tmp_path_factory.mktemp("straight") / "member"
    train(images, folder)
    return folder


def test_killed_extended_and_undisturbed_members_are_equal(
    images: Path, tmp_path: Path, overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = train(images, tmp_path / "straight", *overrides)
    train(images, tmp_path / "extended", *overrides, epochs=2)
    extended = train(images, tmp_path / "extended", *overrides)
    train_until_killed(monkeypatch, 11, images, tmp_path / "killed", *overrides, "training.checkpoint_steps=2")
    killed = train(images, tmp_path / "killed", *overrides)
    for name, result in (("extended", extended), ("killed", killed)):
        assert bits(tmp_path / name) == bits(tmp_path / "straight")
        assert losses(tmp_path / name) == losses(tmp_path / "straight")
        assert (result.metrics, result.best_epoch) == (undisturbed.metrics, undisturbed.best_epoch)
    assert [record.epoch for record in MemberFolder(tmp_path / "killed").epochs()] == [1, 2, 3, 4]


@pytest.mark.parametrize("step", range(1, STEPS, 2))
def test_a_member_killed_at_any_step_goes_on_from_the_checkpoint_before_it(
    images: Path, straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    often = "training.checkpoint_steps=3"
    train_until_killed(monkeypatch, step, images, tmp_path / "killed", often)
    result = train(images, tmp_path / "killed", often)
    assert bits(tmp_path / "killed") == bits(straight)
    assert losses(tmp_path / "killed") == losses(straight)
    assert resumed_from(tmp_path / "killed") == [0, saved_before(step)]
    assert len(result.restarts) == 1


def saved_before(step: int) -> int:
    """Saved at the end of each epoch of 4 steps, and after its third step."""
    assert STEPS_PER_EPOCH == 4
    return max(saved for saved in range(step + 1) if saved % 4 in (0, 3))


def test_a_member_killed_again_and_again_is_equal(
    images: Path, straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (2, 3, 7, 7, 9, 15):
        train_until_killed(monkeypatch, step, images, tmp_path / "killed", "training.checkpoint_steps=1")
    train(images, tmp_path / "killed")
    assert bits(tmp_path / "killed") == bits(straight)
    assert resumed_from(tmp_path / "killed") == [0, 2, 3, 7, 7, 9, 15]


def cut_state(checkpoint: Path) -> None:
    path = checkpoint / "state.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def flip_state(checkpoint: Path) -> None:
    content = bytearray((checkpoint / "state.safetensors").read_bytes())
    content[-9] ^= 1
    (checkpoint / "state.safetensors").write_bytes(content)


def change_loop(checkpoint: Path) -> None:
    loop = json.loads((checkpoint / "loop.json").read_text())
    (checkpoint / "loop.json").write_text(json.dumps({**loop, "epochs_done": 1}))


def cut_loop(checkpoint: Path) -> None:
    (checkpoint / "loop.json").write_text("{")


def lose_state(checkpoint: Path) -> None:
    (checkpoint / "state.safetensors").unlink()


def cut_best(checkpoint: Path) -> None:
    best = json.loads((checkpoint / "loop.json").read_text())["best"]["epoch"]
    path = checkpoint.parent / f"best-{best:05d}.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES = [cut_state, flip_state, change_loop, cut_loop, lose_state]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(
    images: Path, straight: Path, tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    train(images, tmp_path / "member", epochs=2)
    damage(tmp_path / "member/checkpoint/step-00000008")
    train(images, tmp_path / "member")
    assert resumed_from(tmp_path / "member") == [0, 4]
    assert "step-00000008: damaged" in caplog.text
    assert bits(tmp_path / "member") == bits(straight)
    assert losses(tmp_path / "member") == losses(straight)


def test_a_damaged_best_student_or_all_damaged_means_training_again(
    images: Path, straight: Path, tmp_path: Path
) -> None:
    train(images, tmp_path / "member", epochs=2)
    cut_best(tmp_path / "member/checkpoint/step-00000008")
    cut_state(tmp_path / "member/checkpoint/step-00000004")
    train(images, tmp_path / "member")
    assert resumed_from(tmp_path / "member") == [0, 0]
    assert bits(tmp_path / "member") == bits(straight)


def test_a_checkpoint_of_another_version_is_refused(images: Path, tmp_path: Path) -> None:
    train(images, tmp_path / "member", epochs=2)
    for path in (tmp_path / "member/checkpoint").glob("step-*/loop.json"):
        loop = {**json.loads(path.read_text()), "format": 1}
        del loop["sha256"]
        digest = hashlib.sha256(json.dumps(loop, sort_keys=True).encode()).hexdigest()
        path.write_text(json.dumps({**loop, "sha256": digest}))
    before = bits(tmp_path / "member")
    with pytest.raises(RunFolderError, match=r"must be of format 2, got 1.*Finish the pack with that version"):
        train(images, tmp_path / "member")
    assert bits(tmp_path / "member") == before


def test_epochs_recorded_after_the_last_checkpoint_are_trained_again(
    images: Path, straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparse = "training.checkpoint_every=2"
    train_until_killed(monkeypatch, 14, images, tmp_path / "sparse", sparse)
    assert [record.epoch for record in MemberFolder(tmp_path / "sparse").epochs()] == [1, 2, 3]
    train(images, tmp_path / "sparse", sparse)
    assert bits(tmp_path / "sparse") == bits(straight)
    assert [record.epoch for record in MemberFolder(tmp_path / "sparse").epochs()] == [1, 2, 3, 4]


def test_an_evaluation_only_for_being_the_last_does_not_count_when_the_member_is_extended(
    images: Path, tmp_path: Path
) -> None:
    """Evaluated after epochs 2 and 4; the short member also after 3, which a straight one never looks at."""
    turns = ["training.evaluate_every=2", "optimizer.lr=3e-2"]
    undisturbed = train(images, tmp_path / "straight", *turns)
    short = train(images, tmp_path / "extended", *turns, epochs=3)
    extended = train(images, tmp_path / "extended", *turns)
    assert short.epochs == 3
    assert bits(tmp_path / "extended") == bits(tmp_path / "straight")
    assert (extended.best_epoch, extended.metrics) == (undisturbed.best_epoch, undisturbed.metrics)
    loop = json.loads((tmp_path / f"extended/checkpoint/step-{STEPS:08d}/loop.json").read_text())
    assert (loop["epochs_done"], loop["last"]) == (EPOCHS, None)


def test_the_last_epoch_is_kept_and_forgotten_where_it_is_the_one_to_keep(images: Path, tmp_path: Path) -> None:
    train(images, tmp_path / "straight", "selection.split=last")
    short = train(images, tmp_path / "extended", "selection.split=last", epochs=2)
    extended = train(images, tmp_path / "extended", "selection.split=last")
    assert (short.best_epoch, extended.best_epoch) == (2, EPOCHS)
    assert bits(tmp_path / "extended") == bits(tmp_path / "straight")


def test_a_finished_member_is_only_embedded_again(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(images, tmp_path / "member")
    before = bits(tmp_path / "member")
    monkeypatch.setattr(ongoing_module, "train_epoch", None)
    train(images, tmp_path / "member")
    assert bits(tmp_path / "member") == before


def test_only_the_last_two_checkpoints_and_the_students_they_name_are_kept(images: Path, tmp_path: Path) -> None:
    result = train(images, tmp_path / "member", "training.checkpoint_steps=1")
    assert checkpoints(tmp_path / "member") == [STEPS - 1, STEPS]
    students = [path.name for path in (tmp_path / "member/checkpoint").glob("best-*")]
    assert f"best-{result.best_epoch:05d}.safetensors" in students
    assert len(students) <= 2


def test_a_checkpoint_within_an_epoch_holds_the_losses_of_its_steps(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_until_killed(monkeypatch, 7, images, tmp_path / "killed", "training.checkpoint_steps=1")
    tensors = load_file(tmp_path / "killed/checkpoint/step-00000007/state.safetensors")
    total, terms = tensors["losses.total"], (tensors["losses.objective"], tensors["losses.distillation"])
    assert total.shape == (3,)
    assert torch.allclose(total, terms[0] + terms[1])


def test_checkpoints_passed_over_do_not_crowd_out_the_new_ones(
    images: Path, straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(images, tmp_path / "member", epochs=2)
    for checkpoint in ("step-00000004", "step-00000008"):
        cut_state(tmp_path / "member/checkpoint" / checkpoint)
    train_until_killed(monkeypatch, 3, images, tmp_path / "member", "training.checkpoint_steps=1")
    assert checkpoints(tmp_path / "member") == [2, 3]
    train(images, tmp_path / "member")
    assert resumed_from(tmp_path / "member") == [0, 0, 3]
    assert bits(tmp_path / "member") == bits(straight)
