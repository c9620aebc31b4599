"""What a pack and each of its members are doing, read from the run folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.pack.ending import final_results, summary_fits
from sfora_ray.pack.lock import lock_holder
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import failure, restarted
from sfora_ray.training.announcer import now_ms
from sfora_ray.training.attempts import restarts
from sfora_ray.training.member_folder import EpochRecord, MemberFolder, Progress

PackState = Literal["running", "interrupted", "partial", "finished", "never started"]

_SILENCE_SECONDS = 60.0
_SILENT_TURNS = 10
"""So many times `training.progress_seconds` without a word are silence, and at least a minute."""


@dataclass(frozen=True)
class MemberView:
    """One line of the live table."""

    id: str
    seed: int
    state: str
    epoch: int
    epochs: int
    share_done: float
    loss: float | None
    recall_at_1: float | None
    images_per_second: float
    seconds_left: float | None
    note: str


@dataclass(frozen=True)
class PackView:
    """What a pack is doing: the line above the table."""

    state: PackState
    finished: int
    planned: int
    holder: str
    """Who writes the folder; empty if nobody does."""

    def __str__(self) -> str:
        """Return the state in words."""
        if self.state == "never started":
            return f"never started, {self.planned} members planned"
        by = f" by {self.holder}" if self.holder else ""
        return f"{self.state}{by}, {self.finished} of {self.planned} members finished"


def pack_view(run: RunFolder) -> PackView:
    """Return what the pack is doing."""
    holder = str(lock_holder(run.path) or "another process") if run.is_written() else ""
    state = "running" if holder else _state_at_rest(run)
    return PackView(state, len(run.finished()), len(run.specs()), holder)


def _state_at_rest(run: RunFolder) -> PackState:
    """Return the state of a pack that nobody writes."""
    specs, ends = run.specs(), final_results(run)
    if all(spec.id in ends for spec in specs):
        if len(run.finished()) < len(specs):
            return "partial"
        return "finished" if summary_fits(run) else "interrupted"
    begun = run.results() or any(run.member(spec).attempts() for spec in specs)
    return "interrupted" if begun else "never started"


def member_views(run: RunFolder, states: Mapping[str, str]) -> list[MemberView]:
    """Return one view per planned member; ``states`` says what a launcher knows better than the folder."""
    busy = bool(states) or run.is_written()
    ends = final_results(run)
    return [
        _ended(spec, ends[spec.id])
        if spec.id in ends and states.get(spec.id) in (None, "finished", "failed")
        else _view(spec, run.member(spec), states.get(spec.id), busy=busy)
        for spec in run.specs()
    ]


def _view(spec: MemberSpec, folder: MemberFolder, state: str | None, *, busy: bool) -> MemberView:
    progress = folder.progress()
    epochs = folder.epochs()
    begun_again = restarted(restarts(folder.attempts()))
    if progress is None or state == "queued":
        return _waiting(spec, state or "queued", epochs, begun_again)
    silent = _seconds_silent(spec, progress)
    shown = progress.state if busy or not silent else "interrupted"
    notes = (f"silent for {duration(silent)}" if silent and busy else "", begun_again, progress.note)
    done = _share_done(progress)
    return MemberView(
        id=spec.id,
        seed=spec.seed,
        state="stopped" if state == "stopped" else shown,
        epoch=progress.epoch,
        epochs=progress.epochs,
        share_done=done,
        loss=progress.loss if progress.loss is not None else (epochs[-1].loss["total"] if epochs else None),
        recall_at_1=_latest_recall(epochs),
        images_per_second=progress.images_per_second or (epochs[-1].images_per_second if epochs else 0.0),
        seconds_left=_seconds_left(epochs, done * progress.epochs, progress.epochs),
        note="; ".join(filter(None, notes)),
    )


def _seconds_silent(spec: MemberSpec, progress: Progress) -> float:
    """Return for how long a member has said nothing; 0 while that is too short to mean anything."""
    silent = (now_ms() - progress.time_ms) / 1000
    usual = max(_SILENCE_SECONDS, _SILENT_TURNS * spec.config.training.progress_seconds)
    return silent if silent > usual else 0.0


def _ended(spec: MemberSpec, result: MemberResult) -> MemberView:
    return MemberView(
        id=spec.id,
        seed=spec.seed,
        state=result.status,
        epoch=result.best_epoch or 0,
        epochs=spec.config.training.epochs,
        share_done=1.0,
        loss=None,
        recall_at_1=result.metrics.get("recall_at_1"),
        images_per_second=result.images_per_second,
        seconds_left=None,
        note=_remarks(result),
    )


def duration(seconds: float) -> str:
    """Return ``1:02:03`` or ``2:03``."""
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _remarks(result: MemberResult) -> str:
    """Return why a member failed, how often it began again, and what it warns of."""
    if result.status == "failed":
        return failure(result.cause, result.restarts, result.reason)
    return "; ".join(filter(None, (restarted(result.restarts), *result.warnings)))


def _waiting(spec: MemberSpec, state: str, epochs: list[EpochRecord], note: str) -> MemberView:
    total = spec.config.training.epochs
    return MemberView(
        spec.id,
        spec.seed,
        state,
        len(epochs),
        total,
        len(epochs) / total,
        None,
        _latest_recall(epochs),
        0.0,
        None,
        note,
    )


def _share_done(progress: Progress) -> float:
    if progress.state == "embedding":
        return 1.0
    if progress.state == "evaluating":
        return progress.epoch / progress.epochs
    if progress.state != "training":
        return 0.0
    return (progress.epoch - 1 + progress.step / max(progress.steps_per_epoch, 1)) / progress.epochs


def _latest_recall(epochs: list[EpochRecord]) -> float | None:
    for record in reversed(epochs):
        if "test" in record.metrics:
            return record.metrics["test"]["recall_at_1"]
    return None


def _seconds_left(epochs: list[EpochRecord], epochs_done: float, total: int) -> float | None:
    """Estimate from the time between the first and the last recorded epoch, evaluations included."""
    if len(epochs) < 2:
        return None if not epochs else epochs[-1].seconds * (total - epochs_done)
    each = (epochs[-1].time_ms - epochs[0].time_ms) / 1000 / (len(epochs) - 1)
    return each * max(total - epochs_done, 0.0)
