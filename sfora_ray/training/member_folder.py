"""The folder of one member: what its training writes and everybody else reads."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sfora_ray.config.member import Cause, MemberResult
from sfora_ray.files import append_json_line, write_json
from sfora_ray.options import Options
from sfora_ray.training.home import HERE, Home
from sfora_ray.training.records import read_record, read_records


class EpochRecord(Options):
    """One line of ``epochs.jsonl``."""

    epoch: int
    step: int
    """Optimiser steps done so far."""
    time_ms: int
    """Unix time in milliseconds."""
    seconds: float
    images_per_second: float
    loss: dict[str, float]
    """Mean over the epoch of the total loss and of its terms."""
    lr: dict[str, float]
    """Learning rate of each parameter group in this epoch."""
    state: dict[str, float] = {}
    """What else is worth a curve, such as the share of dead variances."""
    metrics: dict[str, dict[str, float]] = {}
    """Retrieval metrics by split, in epochs that were evaluated."""


class Progress(Options):
    """``progress.json``: what a member is doing now, for the live table; rewritten about once a second."""

    state: Literal["preparing", "training", "evaluating", "embedding"]
    epoch: int = 0
    epochs: int
    step: int = 0
    steps_per_epoch: int = 0
    loss: float | None = None
    images_per_second: float = 0.0
    time_ms: int
    note: str = ""

    @property
    def step_of_all(self) -> int:
        """Return the optimiser steps done since the member's first epoch."""
        return max(0, self.epoch - 1) * self.steps_per_epoch + self.step


class AttemptEvent(Options):
    """One line of ``attempts.jsonl``: a process has begun to train the member, or an attempt has ended early.

    The newest ``started`` line says who may write in the folder; a process that finds another name there leaves.
    """

    event: Literal["started", "ended"]
    holder: str
    """Name of the attempt, new each time."""
    time_ms: int
    host: str = ""
    pid: int = 0
    step: int = 0
    """Optimiser steps that the attempt started from, or was seen to have reached when it ended."""
    cause: Cause = ""
    reason: str = ""


@dataclass(frozen=True)
class MemberFolder:
    """Paths in a member's folder and the records that lie there."""

    path: Path
    home: Home = field(default=HERE, compare=False)

    @property
    def place(self) -> str:
        """Return where the folder is at home: its path, or an address in an object store."""
        return self.home.place_of(self.path)

    @property
    def spec_path(self) -> Path:
        """Return the path of ``spec.json``."""
        return self.path / "spec.json"

    @property
    def result_path(self) -> Path:
        """Return the path of ``result.json``."""
        return self.path / "result.json"

    @property
    def epochs_path(self) -> Path:
        """Return the path of ``epochs.jsonl``."""
        return self.path / "epochs.jsonl"

    @property
    def progress_path(self) -> Path:
        """Return the path of ``progress.json``."""
        return self.path / "progress.json"

    @property
    def model_path(self) -> Path:
        """Return the path of the selected epoch's embedder weights."""
        return self.path / "model.safetensors"

    @property
    def log_path(self) -> Path:
        """Return the path of the worker's log."""
        return self.path / "worker.log"

    @property
    def checkpoint_path(self) -> Path:
        """Return the path of the checkpoint of the whole loop state."""
        return self.path / "checkpoint"

    @property
    def attempts_path(self) -> Path:
        """Return the path of ``attempts.jsonl``."""
        return self.path / "attempts.jsonl"

    @property
    def unreadable_path(self) -> Path:
        """Return the path of the list of training images that became unreadable."""
        return self.path / "unreadable.jsonl"

    @property
    def stop_path(self) -> Path:
        """Return the path of the file whose presence asks the member to save its state and leave."""
        return self.path / "stop"

    def embeddings_path(self, split: Literal["train", "test"]) -> Path:
        """Return the path of a split's embedding table."""
        return self.path / f"embeddings.{split}.npz"

    def result(self) -> MemberResult | None:
        """Return the member's result, or None while there is none."""
        if not self.result_path.is_file():
            return None
        return read_record(MemberResult, self.result_path)

    def write_result(self, result: MemberResult) -> None:
        """Write ``result.json``: the last thing a member does."""
        write_json(self.result_path, result.model_dump(mode="json"))

    def epochs(self) -> list[EpochRecord]:
        """Return the epochs recorded so far, in order."""
        return read_records(EpochRecord, self.epochs_path)

    def append_epoch(self, record: EpochRecord) -> None:
        """Append one epoch to ``epochs.jsonl``."""
        append_json_line(self.epochs_path, record.model_dump(mode="json"))

    def attempts(self) -> list[AttemptEvent]:
        """Return every start and every early end recorded so far, in order."""
        return read_records(AttemptEvent, self.attempts_path)

    def append_attempt(self, event: AttemptEvent) -> None:
        """Append a start or an early end to ``attempts.jsonl``."""
        append_json_line(self.attempts_path, event.model_dump(mode="json"))

    def ask_to_stop(self) -> None:
        """Ask the member to save its state and leave; it looks about once a second."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.stop_path.touch()

    def progress(self) -> Progress | None:
        """Return what the member was last seen doing."""
        try:
            return Progress.model_validate_json(self.progress_path.read_bytes())
        except (OSError, ValueError):
            return None  # absent, or being replaced on another node: the next look will see it

    def write_progress(self, progress: Progress) -> None:
        """Replace ``progress.json``; it is shown and forgotten, so that a full disk or a slow one is not its matter."""
        draft = self.progress_path.with_name(f".{self.progress_path.name}")
        with contextlib.suppress(OSError):
            self.path.mkdir(parents=True, exist_ok=True)
            draft.write_text(progress.model_dump_json(), encoding="utf-8")
            draft.replace(self.progress_path)
