"""What a member does about requests to stop, storage that fails, another attempt, and errors of every kind."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

import sfora_ray.training.boundary as boundary_module
import sfora_ray.training.epoch as epoch_module
import sfora_ray.training.patience as patience_module
import sfora_ray.training.saver as saver_module
from sfora_ray.config.member import MemberResult
from sfora_ray.errors import DataError, NonFiniteError, StorageError
from sfora_ray.files import append_json_line, read_json, read_json_lines
from sfora_ray.recipes.base import LossTerms
from sfora_ray.training.attempts import begin_attempt, end_attempt, restarts
from sfora_ray.training.boundary import cause_of, member_result
from sfora_ray.training.checkpoint import LoopState, save_checkpoint
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.parts import Parts
from sfora_ray.training.step import take_step
from sfora_ray.training.worker import Worker
from tests.tiny import tiny_config, tiny_spec
from tests.training.interrupted import EPOCHS, bits, checkpoints, losses, resumed_from, train

AT_ONCE = "training.progress_seconds=0"


def result_of(images: Path, folder: Path, *overrides: str, worker: Worker | None = None) -> MemberResult:
    config = tiny_config(images, folder.parent, *overrides, f"training.epochs={EPOCHS}")
    return member_result(tiny_spec(config), folder, worker or Worker.alone())


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience_module, "PAUSES_SECONDS", (0.0, 0.0))


def at_step(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
    """Do something just before the step ``number``, counted from 0 over all epochs."""

    def step_and_act(parts: Parts, rows: Tensor, labels: Tensor, *, step: int) -> LossTerms:
        if step == number:
            act()
        return take_step(parts, rows, labels, step=step)

    monkeypatch.setattr(epoch_module, "take_step", step_and_act)


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize("step", [0, 5, 6, 7])
def test_a_member_asked_to_stop_saves_the_very_step_and_leaves(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    train(images, tmp_path / "straight")
    folder = MemberFolder(tmp_path / "member")
    at_step(monkeypatch, step, folder.ask_to_stop)
    stopped = result_of(images, folder.path, AT_ONCE)
    assert (stopped.status, checkpoints(folder.path)[-1]) == ("stopped", step + 1)
    assert not folder.result_path.exists()
    folder.stop_path.unlink()
    monkeypatch.undo()
    assert result_of(images, folder.path).status == "finished"
    assert bits(folder.path) == bits(tmp_path / "straight")
    assert losses(folder.path) == losses(tmp_path / "straight")
    assert resumed_from(folder.path) == [0, step + 1]


def test_an_older_attempt_leaves_when_another_has_taken_over(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = MemberFolder(tmp_path / "member")
    at_step(monkeypatch, 6, lambda: (begin_attempt(folder, 4), None)[1])
    left = result_of(images, folder.path, AT_ONCE)
    assert left.status == "stopped"
    assert "another attempt" in left.reason
    assert checkpoints(folder.path) == [4]  # what it did after it was replaced is not saved
    assert not folder.result_path.exists()


def test_a_worker_whose_machine_is_leaving_saves_once_and_goes_on(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saver_module, "GUARD_EVERY", 2)
    saved: list[int] = []

    def counting(folder: Path, parts: Parts, state: LoopState) -> None:
        saved.append(state.steps_done(parts))
        save_checkpoint(folder, parts, state)

    monkeypatch.setattr(saver_module, "save_checkpoint", counting)
    leaving = Worker(0, 1, torch.device("cpu"), leaving=lambda: True)
    assert result_of(images, tmp_path / "member", worker=leaving).status == "finished"
    assert saved == [2, 4, 8, 12, 16]


@dataclass
class FullDisk:
    """Fails the writes of checkpoints with these numbers, as a disk without space does."""

    failing: set[int]
    calls: int = 0

    def save(self, folder: Path, parts: Parts, state: LoopState) -> None:
        self.calls += 1
        if self.calls in self.failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save_checkpoint(folder, parts, state)


def test_a_storage_error_at_a_checkpoint_is_tried_again(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(images, tmp_path / "straight")
    monkeypatch.setattr(saver_module, "save_checkpoint", FullDisk({2, 3}).save)
    result = result_of(images, tmp_path / "member")
    assert (result.status, result.warnings) == ("finished", ())
    assert bits(tmp_path / "member") == bits(tmp_path / "straight")


def test_a_checkpoint_that_cannot_be_written_is_done_without(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(images, tmp_path / "straight")
    monkeypatch.setattr(saver_module, "save_checkpoint", FullDisk({1, 2, 3, 4, 5, 6}).save)
    result = result_of(images, tmp_path / "member")
    assert result.status == "finished"
    assert result.warnings == ("2 checkpoint(s) could not be written; the storage was away or full",)
    assert bits(tmp_path / "member") == bits(tmp_path / "straight")


def test_storage_that_stays_away_ends_the_attempt_and_not_the_member(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(images, tmp_path / "straight")
    folder = MemberFolder(tmp_path / "member")
    with monkeypatch.context() as patch:
        patch.setattr(saver_module, "save_checkpoint", FullDisk(set(range(2, 99))).save)
        with pytest.raises(StorageError, match="could not be written or read in 3 tries"):
            result_of(images, folder.path)
    assert not folder.result_path.exists()
    assert [(event.event, event.cause) for event in folder.attempts()] == [("started", ""), ("ended", "storage")]
    result = result_of(images, folder.path)
    assert "No space left" in result.restarts[0]
    assert bits(folder.path) == bits(tmp_path / "straight")


def test_errors_end_as_results_only_where_a_repeat_would_fail_again(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = MemberFolder(tmp_path / "member")
    for error in (torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("CUDA error: device lost")):
        with monkeypatch.context() as patch:
            at_step(patch, 5, raising(error))
            with pytest.raises(type(error)):
                result_of(images, folder.path)
    with monkeypatch.context() as patch:
        at_step(patch, 5, raising(NonFiniteError("epoch 2, step 2: the loss is nan.")))
        result = result_of(images, folder.path)
    assert (result.status, result.cause, result.reason) == ("failed", "non_finite", "epoch 2, step 2: the loss is nan.")
    assert [reason.split(":")[0] for reason in result.restarts] == ["OutOfMemoryError", "RuntimeError"]
    assert json.loads(folder.result_path.read_text())["cause"] == "non_finite"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (DataError("no such folder"), "input"),
        (NonFiniteError("nan"), "non_finite"),
        (MemoryError(), "out_of_memory"),
        (torch.OutOfMemoryError(), "out_of_memory"),
        (StorageError("away"), "storage"),
        (OSError(errno.EIO, "bad"), "storage"),
        (KeyError("x"), "exception"),
    ],
)
def test_causes(error: Exception, cause: str) -> None:
    assert cause_of(error) == cause


def test_an_attempt_that_said_nothing_is_told_as_such(tmp_path: Path) -> None:
    folder = MemberFolder(tmp_path)
    begin_attempt(folder, 0)
    begin_attempt(folder, 4)
    end_attempt(folder, "signal", "killed by signal 9")
    end_attempt(folder, "node_lost", "told too late: the attempt has said why")
    begin_attempt(folder, 8)
    assert restarts(folder.attempts()) == (
        "its process ended without a word, as after a kill or a lost node",
        "killed by signal 9",
    )


def test_a_line_that_was_torn_by_a_kill_is_replaced_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    append_json_line(path, {"a": 1})
    with path.open("a") as stream:
        stream.write('{"b": ' + "2" * 9000)
    append_json_line(path, {"c": 3})
    assert read_json_lines(path) == [{"a": 1}, {"c": 3}]


def test_a_line_that_does_not_fit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: the kernel refuses the same write."""
    import resource

    path = tmp_path / "lines.jsonl"
    append_json_line(path, {"a": 1})
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5, hard))
    try:
        with pytest.raises(OSError, match="No space left"):
            append_json_line(path, {"b": "much too long for what is left"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before


def test_a_reason_is_one_line() -> None:
    assert boundary_module.reason_of(DataError("a\n b")) == "a b"


def test_a_folder_that_cannot_be_read_for_a_while_ends_nothing(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(images, tmp_path / "straight")

    def away(folder: MemberFolder) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(saver_module, "current_attempt", away)
    assert result_of(images, tmp_path / "member", AT_ONCE).status == "finished"
    assert bits(tmp_path / "member") == bits(tmp_path / "straight")


def test_an_attempt_replaced_during_its_evaluation_records_nothing(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = MemberFolder(tmp_path / "member")
    at_step(monkeypatch, 7, lambda: (begin_attempt(folder, 4), None)[1])
    assert result_of(images, folder.path, "training.progress_seconds=1000").status == "stopped"
    assert [record.epoch for record in folder.epochs()] == [1]
    assert checkpoints(folder.path) == [4]


def test_json_that_the_storage_does_not_give_is_no_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(path: Path, encoding: str) -> str:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(Path, "read_text", stale)
    with pytest.raises(StorageError, match="cannot be read now"):
        read_json(tmp_path / "any.json")
