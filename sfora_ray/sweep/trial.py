"""One trial in one process: its members are trained side by side, and judged by their mean after each evaluation.

A trial that was interrupted says first what it had said before, then goes on from its members' checkpoints: whoever
hears it, hears every epoch of it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from sfora_ray.config.member import Cause, MemberResult, MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import InputError, NonFiniteError
from sfora_ray.sweep.folder import SweepFolder, TrialFolder
from sfora_ray.sweep.ranking import judged
from sfora_ray.sweep.records import Round, SweepManifest, TrialEnd, TrialStatus
from sfora_ray.training.boundary import cause_of
from sfora_ray.training.checkpoint import LoopState
from sfora_ray.training.ongoing import OngoingMember, ongoing_member
from sfora_ray.training.selection import is_due
from sfora_ray.training.worker import Worker

WORST = 0.0
"""What a trial counts as whose loss was not finite: no retrieval metric is lower."""

Report = Callable[[Round], None]
"""Hears of each evaluated epoch; it may end the process, or raise, to stop the trial."""


def run_trial(sweep: SweepFolder, number: int, values: Mapping[str, Any], report: Report) -> None:
    """Train the members of a trial in this process and record how it ends, in its folder.

    Args:
        sweep: where the trial has been begun.
        number: of the trial.
        values: what is tried from now on; those of ``trial.json`` unless the scheduler has changed them.
        report: told of every evaluated epoch, those of an earlier attempt included.

    Raises:
        Exception: the machine, the storage or the software is at fault; the trial has not ended.
    """
    trial, manifest = sweep.trial(number), sweep.manifest()
    for before in trial.rounds():
        report(before)
    if trial.end() is not None:
        return
    try:
        for of_epoch in _rounds(trial, manifest, values):
            report(of_epoch)
    except (NonFiniteError, InputError) as error:
        _end_at_fault(trial, manifest, cause_of(error), str(error), report)


def end_of_failure(trial: TrialFolder, manifest: SweepManifest, result: MemberResult, report: Report) -> None:
    """Record that a trial has ended because a member of it has failed."""
    _end_at_fault(trial, manifest, result.cause, f"{result.id}: {result.reason}", report)


def _end_at_fault(trial: TrialFolder, manifest: SweepManifest, cause: Cause, reason: str, report: Report) -> None:
    """What is not finite counts as the worst, for the scheduler as well, and is not tried again."""
    if cause != "non_finite":
        end_trial(trial, manifest, "failed", reason)
        return
    end_trial(trial, manifest, "non_finite", reason)
    report(Round(epoch=_last_epoch(trial) + 1, value=WORST, time_ms=_now()))


def end_trial(trial: TrialFolder, manifest: SweepManifest, status: TrialStatus, reason: str = "") -> None:
    """Record that a trial has ended, and what it is judged by; one that has ended before stays as it was."""
    if trial.end() is not None:
        return
    judgement = judged(trial.rounds(), manifest.config.selection.epoch)
    value = WORST if status == "non_finite" else None if judgement is None else judgement.value
    reason = " ".join(reason.split())
    trial.write_end(TrialEnd(status=status, reason=reason, epoch=_last_epoch(trial), value=value, time_ms=_now()))


def trial_specs(manifest: SweepManifest, values: Mapping[str, Any]) -> dict[str, MemberSpec]:
    """Return what each member of a trial is to do, by its name."""
    config = manifest.config
    return {
        name: MemberSpec(
            id=name,
            seed=seed,
            config=_saved_when_evaluated(config.trial_config(values, seed, fold)),
            left_out=manifest.left_out,
            dataset_digest=manifest.dataset_digest,
            scored=(config.selection.split,),
        )
        for name, seed, fold in config.member_names()
    }


def _saved_when_evaluated(config: PackConfig) -> PackConfig:
    """A trial that goes on does so from its last round."""
    training = config.training.model_copy(update={"checkpoint_every": config.training.evaluate_every})
    return config.model_copy(update={"training": training})


def missing_rounds(
    trial: TrialFolder, manifest: SweepManifest, specs: Mapping[str, MemberSpec], values: Mapping[str, Any]
) -> Iterator[Round]:
    """Record and yield the epochs that every member has been evaluated after and that are not recorded yet.

    Whether the trial has ended with the last of them is recorded as well, before that is yielded.
    """
    split, metric = manifest.config.selection.split, manifest.config.selection.metric
    metrics = {
        name: {record.epoch: record.metrics[split] for record in trial.member(name).epochs() if split in record.metrics}
        for name in specs
    }
    epochs = next(iter(specs.values())).config.training.epochs
    everywhere = set.intersection(*(set(of_member) for of_member in metrics.values()))
    for epoch in sorted(epoch for epoch in everywhere if epoch > _last_epoch(trial)):
        scores = {name: of_member[epoch] for name, of_member in metrics.items()}
        changed = {} if values == trial.record().values else dict(values)
        mean = statistics.fmean(of_member[metric] for of_member in scores.values())
        of_epoch = Round(epoch=epoch, value=mean, members=scores, time_ms=_now(), values=changed)
        trial.append_round(of_epoch)
        if epoch == epochs:
            end_trial(trial, manifest, "finished")
        yield of_epoch


@dataclass
class _Place:
    """A member, and where its loop stands."""

    member: OngoingMember
    state: LoopState

    def train_to(self, epoch: int) -> None:
        while self.state.epochs_done < epoch:
            self.state = self.member.next_epoch(self.state)


def _rounds(trial: TrialFolder, manifest: SweepManifest, values: Mapping[str, Any]) -> Iterator[Round]:
    """Train all members from evaluation to evaluation, yielding each as it is recorded."""
    specs = trial_specs(manifest, values)
    config = next(iter(specs.values())).config
    worker = Worker.alone()
    with ExitStack() as stack:
        places = [
            _Place(*stack.enter_context(ongoing_member(spec, trial.member(name), worker)))
            for name, spec in specs.items()
        ]
        for epoch in (epoch for epoch in range(1, config.training.epochs + 1) if is_due(config, epoch)):
            for place in places:
                place.train_to(epoch)
            yield from missing_rounds(trial, manifest, specs, values)


def _last_epoch(trial: TrialFolder) -> int:
    rounds = trial.rounds()
    return rounds[-1].epoch if rounds else 0


def _now() -> int:
    return time.time_ns() // 1_000_000
