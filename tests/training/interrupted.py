"""A member of the tiny pack, trained, killed at any step, and compared bit by bit."""

from pathlib import Path

import pytest
from torch import Tensor

import sfora_ray.training.epoch as epoch_module
from sfora_ray.config.member import MemberResult
from sfora_ray.recipes.base import LossTerms
from sfora_ray.training.member import train_member
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.parts import Parts
from sfora_ray.training.step import take_step
from sfora_ray.training.worker import Worker
from tests.tiny import STEPS_PER_EPOCH, tiny_config, tiny_spec

EPOCHS = 4
STEPS = EPOCHS * STEPS_PER_EPOCH


class Killed(BaseException):
    """What a signal does to a process: nothing of ours can answer it."""


def train(images: Path, folder: Path, *overrides: str, epochs: int = EPOCHS) -> MemberResult:
    config = tiny_config(images, folder.parent, *overrides, f"training.epochs={epochs}")
    return train_member(tiny_spec(config), MemberFolder(folder), Worker.alone())


def train_until_killed(
    monkeypatch: pytest.MonkeyPatch, after: int, images: Path, folder: Path, *overrides: str, epochs: int = EPOCHS
) -> None:
    """Train and die when ``after`` optimiser steps are done, counted from the member's first epoch."""

    def fatal(parts: Parts, rows: Tensor, labels: Tensor, *, step: int) -> LossTerms:
        if step == after:
            raise Killed
        return take_step(parts, rows, labels, step=step)

    with monkeypatch.context() as patch:
        patch.setattr(epoch_module, "take_step", fatal)
        with pytest.raises(Killed):
            train(images, folder, *overrides, epochs=epochs)


def bits(folder: Path) -> dict[str, bytes]:
    """Return the files that hold what was learnt, the whole last loop state among them."""
    names = ["model.safetensors", "embeddings.test.npz", "embeddings.train.npz"]
    state = max(folder.glob("checkpoint/step-*")).relative_to(folder) / "state.safetensors"
    return {name: (folder / name).read_bytes() for name in [*names, str(state)]}


def losses(folder: Path) -> list[dict[str, float]]:
    return [record.loss for record in MemberFolder(folder).epochs()]


def checkpoints(folder: Path) -> list[int]:
    """Return the steps of the checkpoints that lie there."""
    return sorted(int(path.name.removeprefix("step-")) for path in (folder / "checkpoint").glob("step-*"))


def resumed_from(folder: Path) -> list[int]:
    """Return the step that each attempt started from."""
    return [event.step for event in MemberFolder(folder).attempts() if event.event == "started"]
