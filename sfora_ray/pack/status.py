"""What each member of a pack is doing, read from the run folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.member_folder import EpochRecord, MemberFolder, Progress


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


def member_views(run: RunFolder, states: Mapping[str, str]) -> list[MemberView]:
    """Return one view per planned member; ``states`` says what a launcher knows better than the folder."""
    return [_view(spec, run.member(spec), states.get(spec.id)) for spec in run.specs()]


def _view(spec: MemberSpec, folder: MemberFolder, state: str | None) -> MemberView:
    result = folder.result()
    if result is not None and state in (None, "finished", "failed"):
        return _ended(spec, result)
    progress = folder.progress()
    epochs = folder.epochs()
    if progress is None or state == "queued":
        return _waiting(spec, state or "queued", epochs)
    done = _share_done(progress)
    return MemberView(
        id=spec.id,
        seed=spec.seed,
        state=progress.state,
        epoch=progress.epoch,
        epochs=progress.epochs,
        share_done=done,
        loss=progress.loss if progress.loss is not None else (epochs[-1].loss["total"] if epochs else None),
        recall_at_1=_latest_recall(epochs),
        images_per_second=progress.images_per_second or (epochs[-1].images_per_second if epochs else 0.0),
        seconds_left=_seconds_left(epochs, done * progress.epochs, progress.epochs),
        note=progress.note,
    )


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
        note=result.reason or "; ".join(result.warnings),
    )


def _waiting(spec: MemberSpec, state: str, epochs: list[EpochRecord]) -> MemberView:
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
        "",
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
