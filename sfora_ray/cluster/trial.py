"""A trial as Ray Tune runs it: in the trial's own process, or, for members of several workers, as Train runs.

Tune owns the resources of a trial that trains in its own process: when a scheduler stops it, they are free. A trial of
members with several workers holds none itself; what Train leaves behind when such a trial is stopped, the driver
removes (see :mod:`sfora_ray.cluster.leftovers`).
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import ray
from ray import ObjectRef, tune

from sfora_ray.cluster.backend import collective_backend
from sfora_ray.cluster.member import Landing, MemberTask, run_member, send
from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.options import Options
from sfora_ray.sweep.exploit import adopt_state, keep_state
from sfora_ray.sweep.folder import SweepFolder, TrialFolder
from sfora_ray.sweep.records import Round
from sfora_ray.sweep.trial import Report, end_of_failure, end_trial, missing_rounds, run_trial, trial_specs
from sfora_ray.training.boundary import cause_of, reason_of
from sfora_ray.training.output import output_to

EPOCH, VALUE = "epoch", "value"
"""What Tune hears of a round."""

_log = logging.getLogger(__name__)
_SECONDS_BETWEEN_LOOKS = 0.5


class TrialOrder(Options):
    """What every trial of a sweep is told."""

    sweep: Path
    """The sweep folder as the driver sees it; every node sees the same."""
    working_dir: Path
    """Relative paths in the config start here."""
    exploits: bool = False
    """Whether a trial's state is kept at each round, for another to go on from it."""


def train_trial(config: dict[str, Any]) -> None:
    """Train the trial that Tune calls ``t<number>`` with ``config["values"]``; only interruption ends it otherwise."""
    order = TrialOrder.model_validate(config["order"])
    if order.working_dir.is_dir():
        os.chdir(order.working_dir)
    sweep, number = SweepFolder(order.sweep), number_of(tune.get_context().get_trial_name())
    trial = sweep.trial(number)
    with output_to(trial.path / "trial.log"):
        report = _report(trial, heard=_go_on_from(trial), keeps=order.exploits)
        train = run_trial if sweep.config().pack.resources.workers_per_member == 1 else _run_nested
        try:
            train(sweep, number, config["values"], report)
        except Exception as error:
            _log.exception("trial %s", trial.name)
            if isinstance(error, SforaError) or cause_of(error) != "exception":
                raise  # the machine's fault, or Ray's: Tune starts the trial again
            end_trial(trial, sweep.manifest(), "failed", reason_of(error))


def number_of(name: str) -> int:
    """Return the number of the trial that Tune was told to call ``name``."""
    return int(name.removeprefix("t"))


def name_of(number: int) -> str:
    """Return what Tune is told to call a trial."""
    return f"t{number:03d}"


def _report(trial: TrialFolder, *, heard: int, keeps: bool) -> Report:
    """Return what tells Tune of the rounds after epoch ``heard``, with the state of the trial if it is to keep it."""

    def report(of_epoch: Round) -> None:
        if of_epoch.epoch <= heard:
            return
        metrics = {EPOCH: of_epoch.epoch, VALUE: of_epoch.value}
        if not keeps:
            tune.report(metrics)
            return
        if trial.end() is not None:
            return  # nobody can go on from its end, nor is it to go on from another's state
        with tempfile.TemporaryDirectory(prefix="sfora-trial-") as folder:
            keep_state(trial, Path(folder))
            tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))

    return report


def _go_on_from(trial: TrialFolder) -> int:
    """Go on from the state of the trial that the scheduler has chosen; return the epoch that Tune has heard of."""
    checkpoint = tune.get_checkpoint()
    if checkpoint is None or trial.end() is not None:
        return 0
    with checkpoint.as_directory() as folder:
        return adopt_state(trial, Path(folder))


def _run_nested(sweep: SweepFolder, number: int, values: Mapping[str, Any], report: Report) -> None:
    """Train each member of a trial as a Train run of its own, all at once, telling the rounds as they are complete.

    Raises:
        SforaError: Ray could not train a member to its end; the trial has not ended.
    """
    trial, manifest = sweep.trial(number), sweep.manifest()
    for before in trial.rounds():
        report(before)
    if trial.end() is not None:
        return
    specs = trial_specs(manifest, values)
    refs = {name: _sent(spec, trial) for name, spec in specs.items()}
    try:
        waiting = list(refs.values())
        while waiting:
            ended, waiting = ray.wait(waiting, timeout=_SECONDS_BETWEEN_LOOKS)
            for ref in ended:
                landing = Landing.model_validate(ray.get(ref))
                if landing.result is None or landing.result.status == "stopped":
                    raise SforaError(f"trial {trial.name}: {landing.end.reason if landing.end else 'stopped'}")
                if landing.result.status == "failed":
                    end_of_failure(trial, manifest, landing.result, report)
                    return
            for of_epoch in missing_rounds(trial, manifest, specs, values):
                report(of_epoch)
    finally:
        _cancel(refs.values())


def _sent(spec: MemberSpec, trial: TrialFolder) -> ObjectRef[dict[str, Any]]:
    folder = trial.member(spec.id)
    folder.path.mkdir(parents=True, exist_ok=True)
    return send(
        run_member,
        MemberTask(
            spec=spec,
            folder=folder.path.absolute(),
            place=str(folder.path.absolute()),
            working_dir=Path.cwd(),
            scratch=Path(tempfile.mkdtemp(prefix=f"sfora-train-{trial.name}-{spec.id}-")),
            backend=collective_backend(spec.config.resources),
        ),
    )


def _cancel(refs: Iterable[ObjectRef[dict[str, Any]]]) -> None:
    left = list(refs)
    for ref in left:
        ray.cancel(ref)
    deadline = time.monotonic() + 10
    while left and time.monotonic() < deadline:
        _, left = ray.wait(left, timeout=_SECONDS_BETWEEN_LOOKS)
