"""Which configuration is best, by what was seen of each.

Trials that ran all their epochs come first, by value. Those that the scheduler stopped follow, the ones that came
further first: a value after few epochs is not to be held against one after many. Then come those whose loss was not
finite, those that failed, and those that have not ended.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, Literal

from sfora_ray.options import Options
from sfora_ray.sweep.folder import SweepFolder, Trial
from sfora_ray.sweep.records import Round, TrialStatus

RankedStatus = TrialStatus | Literal["unfinished"]

_ORDER: tuple[RankedStatus, ...] = ("finished", "stopped", "non_finite", "failed", "unfinished")


class RankedTrial(Options):
    """A trial, and where it stands among the others."""

    rank: int
    """From 1 on."""
    number: int
    values: dict[str, Any]
    status: RankedStatus
    reason: str = ""
    epochs: int
    """Epochs that it was trained for, as far as they were evaluated."""
    value: float | None
    """What it is judged by; None where nothing was evaluated."""
    judged_epoch: int | None
    """The epoch that has this value."""
    members: dict[str, float] = {}
    """The selection's metric of each member in that epoch."""
    std: float | None
    """Standard deviation over these members; None for one."""

    @property
    def name(self) -> str:
        """Return the trial's name, such as ``t007``."""
        return f"t{self.number:03d}"


class Ranking(Options):
    """``ranking.json``."""

    format: Literal[1] = 1
    sweep: str
    selection: Literal["validation", "test"]
    metric: str
    judged_by: Literal["best", "last"]
    seeds: tuple[int, ...]
    folds: int
    planned: int | None
    """Trials that the sweep is to have; None where the space alone says so."""
    trials: tuple[RankedTrial, ...]

    @property
    def members(self) -> int:
        """Return how many members each configuration has."""
        return len(self.seeds) * self.folds

    def ended(self) -> tuple[RankedTrial, ...]:
        """Return the trials that have ended, the best first."""
        return tuple(trial for trial in self.trials if trial.status != "unfinished")

    def best(self) -> RankedTrial | None:
        """Return the best trial: one that finished, or that was stopped where none did; None if there is neither."""
        first = self.trials[0] if self.trials else None
        return first if first is not None and first.status in ("finished", "stopped") else None


def judged(rounds: Sequence[Round], epoch: Literal["best", "last"]) -> Round | None:
    """Return the epoch that a configuration is judged by: the best mean, of equals the earliest, or the last one."""
    if not rounds:
        return None
    return rounds[-1] if epoch == "last" else max(rounds, key=lambda one: (one.value, -one.epoch))


def ranking(sweep: SweepFolder) -> Ranking:
    """Return the ranking of a sweep as its folder stands."""
    manifest = sweep.manifest()
    config = manifest.config
    return Ranking(
        sweep=f"{manifest.name}-{manifest.digest}",
        selection=config.selection.split,
        metric=config.selection.metric,
        judged_by=config.selection.epoch,
        seeds=config.seeds,
        folds=config.selection.folds,
        planned=config.num_trials,
        trials=ranked(sweep),
    )


def ranked(sweep: SweepFolder) -> tuple[RankedTrial, ...]:
    """Return the trials of a sweep, the best first."""
    selection = sweep.config().selection
    found = [_unranked(trial, selection.metric, selection.epoch) for trial in sweep.trials()]
    ordered = sorted(found, key=_place)
    return tuple(trial.model_copy(update={"rank": rank}) for rank, trial in enumerate(ordered, start=1))


def _place(trial: RankedTrial) -> tuple[int, int, float, int]:
    epochs = trial.epochs if trial.status == "stopped" else 0
    return _ORDER.index(trial.status), -epochs, -(trial.value or 0.0), trial.number


def _unranked(trial: Trial, metric: str, epoch: Literal["best", "last"]) -> RankedTrial:
    at, end = judged(trial.rounds, epoch), trial.end
    members = {} if at is None else {name: scores[metric] for name, scores in at.members.items() if metric in scores}
    so_far = None if at is None else at.value
    return RankedTrial(
        rank=0,
        number=trial.number,
        values=trial.values,
        status="unfinished" if end is None else end.status,
        reason="" if end is None else end.reason,
        epochs=_epochs(trial),
        value=so_far if end is None else end.value,
        judged_epoch=None if at is None else at.epoch,
        members=members,
        std=statistics.stdev(members.values()) if len(members) > 1 else None,
    )


def _epochs(trial: Trial) -> int:
    if trial.end is not None:
        return trial.end.epoch
    return trial.rounds[-1].epoch if trial.rounds else 0
