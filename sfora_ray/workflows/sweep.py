"""``sweep run`` and ``sweep resume``: from a space to ranked configurations, a report, and a tracker that was told."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sfora_ray.config.load_sweep import build_sweep
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.data.unreadable import names_of
from sfora_ray.errors import ConfigError, RunFolderError, SforaError, StorageError
from sfora_ray.pack.following import following
from sfora_ray.pack.lock import run_lock
from sfora_ray.reporting.sweep import write_sweep_report
from sfora_ray.sweep.best import write_results
from sfora_ray.sweep.ending import is_complete, sweep_status
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.keeper import kept
from sfora_ray.sweep.mirror import SweepMirror
from sfora_ray.sweep.ranking import Ranking
from sfora_ray.sweep.status import SweepView, sweep_view
from sfora_ray.tracking import RunStatus, Tracker
from sfora_ray.training.preflight import MemberPlan, preflight
from sfora_ray.training.preparation import prepare_data
from sfora_ray.workflows.run_pack import now_and_then, patient_tracker
from sfora_ray.workflows.tell_sweep import tell_sweep_within
from sfora_ray.workflows.train_pack import Say
from sfora_ray.workflows.trials import Trials, TrialsOnRay

Watch = Callable[[SweepView], None]


def run_sweep(
    config: SweepConfig, *, watch: Watch, say: Say, trials: Trials | None = None
) -> tuple[SweepFolder, Ranking]:
    """Run a new sweep and rank its trials.

    Raises:
        InputError: something is wrong that could be seen at once; nothing was written.
        SforaError: no trial came to anything.
    """
    sweep, place = SweepFolder.of(config), trials or TrialsOnRay()
    sweep.refuse_taken()
    say("checking tracker, data and weights")
    tracker = config.pack.tracking.build()
    tracker.check()
    plan, left_out = _prepared(config, say)
    with place.ready(config):
        _refuse_impossible(place, config, sweep, say)
        with run_lock(sweep.path):
            sweep = SweepFolder.create(config, plan.weights, plan.dataset_digest, left_out)
            say(f"sweep folder {sweep.path}")
            return sweep, _search(sweep, tracker, place, watch=watch, say=say)


def run_or_resume_sweep(
    config: SweepConfig, *, watch: Watch, say: Say, trials: Trials | None = None
) -> tuple[SweepFolder, Ranking]:
    """Run the sweep, or continue it if it has a folder: what a job does that is submitted again."""
    sweep = SweepFolder.of(config)
    if not sweep.manifest_path.exists():
        return run_sweep(config, watch=watch, say=say, trials=trials)
    SweepFolder.open(sweep.path)
    with run_lock(sweep.path):
        sweep.adopt(config)
        return sweep, _go_on(sweep, trials or TrialsOnRay(), watch=watch, say=say)


def resume_sweep(
    place: Path | str, *, num_trials: int | None = None, watch: Watch, say: Say, trials: Trials | None = None
) -> tuple[SweepFolder, Ranking]:
    """Continue a sweep: trials that have ended stay, the others go on from their last checkpoint.

    Args:
        place: the sweep folder.
        num_trials: how many trials it is to have from now on; None for what it has been told.
        watch: shown what goes on.
        say: told what is being done.
        trials: where trials run; on Ray if None.

    Raises:
        InputError: there is no such sweep, another process writes it, or its data or weights are not what they were.
        SforaError: no trial came to anything.
    """
    sweep = SweepFolder.open(Path(place))
    _longer(sweep, num_trials)  # before waiting for the lock
    with run_lock(sweep.path):
        sweep.adopt(_longer(sweep, num_trials))
        return sweep, _go_on(sweep, trials or TrialsOnRay(), watch=watch, say=say)


def _longer(sweep: SweepFolder, num_trials: int | None) -> SweepConfig:
    """Return the sweep's configuration with that many trials."""
    config = sweep.config()
    if num_trials is None:
        return config
    begun = len(sweep.numbers())
    if num_trials < begun:
        raise ConfigError(
            f"{sweep.path}: --trials: the sweep has begun {begun} trials, got {num_trials}. Give {begun} or more."
        )
    return build_sweep({**config.plain(), "trials": num_trials}, place=f"{sweep.path}, --trials {num_trials}")


def _prepared(config: SweepConfig, say: Say) -> tuple[MemberPlan, tuple[str, ...]]:
    """Check what every trial stands on and fill the node's cache; return the plan and the ids that are left out."""
    trained = trained_pack(config)
    plan = preflight(trained)
    left_out = prepare_data(trained, now_and_then(say)).left_out
    if left_out:
        say(f"warning: {len(left_out)} image(s) cannot be read and are left out: {names_of(left_out)}")
        plan = preflight(trained, left_out)
    return plan, left_out


def trained_pack(config: SweepConfig) -> PackConfig:
    """Return what the first member of a trial that changes nothing would be trained with."""
    _, seed, fold = config.member_names()[0]
    return config.trial_config({}, seed, fold)


def _refuse_impossible(place: Trials, config: SweepConfig, sweep: SweepFolder, say: Say) -> None:
    place.refuse_impossible(config, sweep.path.parent)
    at_once, planned = place.at_once(config), config.num_trials
    say(
        f"{at_once} trials run at once"
        if planned is None
        else f"{min(at_once, planned)} of {planned} trials run at once"
    )


def _go_on(sweep: SweepFolder, place: Trials, *, watch: Watch, say: Say) -> Ranking:
    config = sweep.config()
    tracker = patient_tracker(config.pack, say)
    if is_complete(sweep):
        # Only ranking, report and tracker are left, which need neither GPUs nor Ray.
        return _finish(sweep, tracker, None, watch=watch, say=say)
    _refuse_changes(sweep, config)
    with place.ready(config):
        _refuse_impossible(place, config, sweep, say)
        return _search(sweep, tracker, place, watch=watch, say=say)


def _refuse_changes(sweep: SweepFolder, config: SweepConfig) -> None:
    """Prove that trials start from the same weights and see the same rows as those before them."""
    manifest = sweep.manifest()
    plan = preflight(trained_pack(config), manifest.left_out)
    if plan.weights != manifest.weights:
        raise RunFolderError(
            f"{sweep.path}: its trials started from weights '{manifest.weights}', got '{plan.weights}'. "
            "Put the old file back, or run a new sweep."
        )
    if manifest.dataset_digest and plan.dataset_digest != manifest.dataset_digest:
        raise RunFolderError(
            f"{sweep.path}: its trials saw data with digest {manifest.dataset_digest}, got {plan.dataset_digest}. "
            "Put the old images back, or run a new sweep."
        )


def _search(sweep: SweepFolder, tracker: Tracker, place: Trials, *, watch: Watch, say: Say) -> Ranking:
    def run() -> None:
        place.run(sweep, lambda: _show(sweep, watch))

    return _finish(sweep, tracker, run, watch=watch, say=say)


def _finish(sweep: SweepFolder, tracker: Tracker, run: Callable[[], None] | None, *, watch: Watch, say: Say) -> Ranking:
    """Run what is left to run, then rank and report. The tracker can spoil none of it."""
    mirror = SweepMirror(sweep, tracker)
    status: RunStatus = "FAILED"
    with kept(sweep) as keeper, following(mirror):
        try:
            if run is not None:
                run()
            found = _ranked(sweep, watch, say)
            status = sweep_status(sweep)
            return found
        except KeyboardInterrupt:
            status = "KILLED"
            write_results(sweep)
            raise
        finally:
            if status == "FINISHED":
                say("logging metrics, the ranking and the report")
            if tell_sweep_within(sweep, mirror, status, say):
                keeper.dismiss()


def _ranked(sweep: SweepFolder, watch: Watch, say: Say) -> Ranking:
    found = write_results(sweep)
    say("writing the report")
    write_sweep_report(sweep, found)
    _show(sweep, watch)
    if found.best() is None:
        reasons = "; ".join(f"{trial.name} {trial.status}: {trial.reason}" for trial in found.trials)
        raise SforaError(f"{sweep.path}: no trial came to anything: {reasons}. Correct the space, and run a new sweep.")
    return found


def _show(sweep: SweepFolder, watch: Watch) -> None:
    with suppress(OSError, StorageError):  # it cannot be read just now: nothing to show this time
        watch(sweep_view(sweep))
