"""What a searcher is told of the trials so far, and what a tracker is told of each record."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from sfora_ray.config.pack import PackConfig
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.pack.told import flat, points
from sfora_ray.search.base import Told
from sfora_ray.sweep.folder import SweepFolder, Trial
from sfora_ray.sweep.ranking import RankedTrial, Ranking
from sfora_ray.sweep.records import Round, TrialEnd
from sfora_ray.tracking import DESCRIPTION_TAG, MetricPoint

SCORE = "score"
"""Metric of every trial that has ended: what it is judged by, 0 where it came to nothing."""
_WORST = 0.0
_ABSENT = "-"
# What may change when a sweep is taken up again is no parameter, for those never change; the pack is told by itself.
_NOT_PARAMS = ("name", "pack", "set", "trials", "max_concurrent_trials", "max_failures")


def told(sweep: SweepFolder) -> tuple[Told, ...]:
    """Return the trials so far as a searcher sees them, by number; one that came to nothing has the worst value."""
    return tuple(_told(trial) for trial in sweep.trials())


def score_of(end: TrialEnd) -> float:
    """Return what a trial that has ended counts as: the worst where it came to nothing."""
    return _WORST if end.value is None else end.value


def _told(trial: Trial) -> Told:
    end = trial.end
    if end is None:
        epoch = trial.rounds[-1].epoch if trial.rounds else 0
        return Told(number=trial.number, values=trial.values, value=None, epoch=epoch)
    return Told(number=trial.number, values=trial.values, value=score_of(end), epoch=end.epoch, status=end.status)


def sweep_params(config: SweepConfig) -> dict[str, str]:
    """Return the parameters of a sweep's own run: the space, how it is searched, and the pack that all starts from."""
    own = flat(config.plain(), leave_out=_NOT_PARAMS)
    return {**own, **{f"pack.{path}": value for path, value in flat(config.pack.plain(), ("seeds",)).items()}}


def trial_params(config: SweepConfig, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a trial: every searched path, and nothing that is the same in all trials.

    A path whose condition does not hold has the value that the pack is trained with, or ``-`` if it has no such
    place: views over several trials need the same keys in each.
    """
    fixed = config.candidate(values)
    searched = {path: values[path] if path in values else _at(fixed, path) for path in config.space}
    return {path: _text(value) for path, value in searched.items()}


def member_tags(config: SweepConfig) -> dict[str, str]:
    """Return the tags of a trial that say over how many members its mean is."""
    seeds = ", ".join(str(seed) for seed in config.seeds)
    return {"sfora.seeds": seeds, "sfora.folds": str(config.selection.folds)}


def _at(config: PackConfig, path: str) -> Any:
    """Return the value at a dotted path, ``-`` if there is no such place."""
    place: Any = config.plain()
    for key in path.split("."):
        if not isinstance(place, dict) or key not in place:
            return _ABSENT
        place = place[key]
    return place


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def round_points(of_epoch: Round, metric: str) -> Iterator[MetricPoint]:
    """Yield the points of one epoch: the mean of each metric over members, and each member's selection metric."""
    keys = {key for scores in of_epoch.members.values() for key in scores}
    # MLflow's pages show first what is told first.
    values = {metric: of_epoch.value} | {key: _mean(of_epoch, key) for key in sorted(keys - {metric})}
    values |= {f"{metric}.{name}": scores[metric] for name, scores in of_epoch.members.items() if metric in scores}
    values |= {f"tried.{path}": float(value) for path, value in of_epoch.values.items() if _is_number(value)}
    yield from points(values, of_epoch.epoch, of_epoch.time_ms)


def _mean(of_epoch: Round, key: str) -> float:
    return statistics.fmean(scores[key] for scores in of_epoch.members.values() if key in scores)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def end_points(end: TrialEnd) -> Iterator[MetricPoint]:
    """Yield what a trial came to."""
    yield from points({SCORE: score_of(end)}, end.epoch, end.time_ms)


def end_tags(end: TrialEnd | None) -> dict[str, str]:
    """Return the tags that say how a trial ended, empty while it has not."""
    if end is None:
        return {"sfora.status": "", "sfora.reason": "", "sfora.stopped_early": ""}
    early = str(end.status == "stopped").lower()
    return {"sfora.status": end.status, "sfora.reason": end.reason, "sfora.stopped_early": early}


def ranking_points(found: Ranking, time_ms: int) -> Iterator[MetricPoint]:
    """Yield what a sweep came to so far; the step is the number of trials that have ended."""
    counts = {f"trials.{status}": 0.0 for status in ("finished", "stopped", "non_finite", "failed")}
    for trial in found.ended():
        counts[f"trials.{trial.status}"] += 1.0
    best = found.best()
    if best is not None and best.value is not None:
        counts |= {f"best.{found.metric}": best.value}
    if best is not None and best.std is not None:
        counts |= {f"best.{found.metric}.std": best.std}
    yield from points(counts, len(found.ended()), time_ms)


def ranking_tags(found: Ranking) -> dict[str, str]:
    """Return the parent's tags that name the best trial."""
    best = found.best()
    if best is None:
        return {"sfora.best_trial": "", "sfora.best_values": "", DESCRIPTION_TAG: ""}
    values = json.dumps(best.values, ensure_ascii=False)
    return {"sfora.best_trial": best.name, "sfora.best_values": values, DESCRIPTION_TAG: _story(found, best)}


def _story(found: Ranking, best: RankedTrial) -> str:
    where = "the test classes" if found.selection == "test" else "held-out training classes"
    values = ", ".join(f"{path} {_text(value)}" for path, value in best.values.items())
    return (
        f"{len(found.ended())} trials; best {best.name} with {values}: {found.metric} {best.value:.4f} on {where}, "
        f"mean over {len(best.members)} member(s). The best of many draws: `sweep confirm` tells what is left of it."
    )
