"""What a sweep and each of its trials are doing, read from the sweep folder alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfora_ray.pack.lock import lock_holder
from sfora_ray.sweep.ending import is_complete
from sfora_ray.sweep.folder import SweepFolder, Trial
from sfora_ray.sweep.ranking import judged

SweepState = Literal["running", "interrupted", "finished", "never started"]
TrialState = Literal["starting", "running", "interrupted", "finished", "stopped", "non_finite", "failed"]


@dataclass(frozen=True)
class TrialView:
    """One line of the live table."""

    name: str
    state: TrialState
    epoch: int
    epochs: int
    value: float | None
    """What it is judged by, so far where it goes on."""
    values: dict[str, Any]
    note: str


@dataclass(frozen=True)
class SweepView:
    """What a sweep is doing."""

    state: SweepState
    planned: int
    metric: str
    selection: str
    holder: str
    """Who writes the folder; empty if nobody does."""
    seconds_left: float | None
    """Judged by the trials that have ended; None while none has, and at the end."""
    trials: tuple[TrialView, ...]

    @property
    def ended(self) -> tuple[TrialView, ...]:
        """Return the trials that have ended."""
        return tuple(trial for trial in self.trials if trial.state not in _UNDER_WAY)

    @property
    def best(self) -> TrialView | None:
        """Return the trial with the best value so far."""
        known = [trial for trial in self.trials if trial.value is not None and trial.state not in _FAULTY]
        return max(known, key=lambda trial: trial.value or 0.0, default=None)

    def __str__(self) -> str:
        """Return the state in words."""
        if self.state == "never started":
            return f"never started, {self.planned} trials planned"
        by = f" by {self.holder}" if self.holder else ""
        under_way = len(self.trials) - len(self.ended)
        going = f", {under_way} under way" if under_way else ""
        return f"{self.state}{by}, {len(self.ended)} of {self.planned} trials ended{going}"


_UNDER_WAY = ("starting", "running", "interrupted")
_FAULTY = ("non_finite", "failed")


def sweep_view(sweep: SweepFolder) -> SweepView:
    """Return what the sweep and its trials are doing."""
    config, trials = sweep.config(), sweep.trials()
    holder = str(lock_holder(sweep.path) or "another process") if sweep.is_written() else ""
    planned = max(config.num_trials or 0, len(trials))
    return SweepView(
        state="running" if holder else _state_at_rest(sweep, trials),
        planned=planned,
        metric=config.selection.metric,
        selection=config.selection.split,
        holder=holder,
        seconds_left=_seconds_left(trials, planned) if holder else None,
        trials=tuple(
            _view(trial, config.pack.training.epochs, config.selection.epoch, busy=bool(holder)) for trial in trials
        ),
    )


def _state_at_rest(sweep: SweepFolder, trials: Sequence[Trial]) -> SweepState:
    """Return the state of a sweep that nobody writes."""
    if not trials:
        return "never started"
    return "finished" if is_complete(sweep) and sweep.ranking_path.is_file() else "interrupted"


def _view(trial: Trial, epochs: int, judged_by: Literal["best", "last"], *, busy: bool) -> TrialView:
    at, end = judged(trial.rounds, judged_by), trial.end
    so_far = None if at is None else at.value
    return TrialView(
        name=trial.name,
        state=end.status if end is not None else _state(trial, busy=busy),
        epoch=end.epoch if end is not None else _epoch(trial),
        epochs=int(trial.values.get("training.epochs", epochs)),
        value=end.value if end is not None else so_far,
        values=trial.values,
        note="" if end is None else end.reason,
    )


def _state(trial: Trial, *, busy: bool) -> TrialState:
    if not busy:
        return "interrupted"
    return "running" if trial.rounds or _epoch(trial) else "starting"


def _epoch(trial: Trial) -> int:
    """Return the epoch that some member is in, or the last that was evaluated."""
    folders = sorted((trial.folder.path / "members").glob("*"))
    progress = [trial.folder.member(folder.name).progress() for folder in folders]
    return max([one.epoch for one in progress if one is not None] + [one.epoch for one in trial.rounds], default=0)


def _seconds_left(trials: Sequence[Trial], planned: int) -> float | None:
    """Estimate from how long the trials took that have ended, and how many run now."""
    took = [(trial.end.time_ms - trial.record.created_ms) / 1000 for trial in trials if trial.end is not None]
    under_way = len(trials) - len(took)
    if not took or not under_way:
        return None
    return statistics.fmean(took) * (planned - len(took)) / under_way
