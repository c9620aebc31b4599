"""The trials of a sweep on Ray Tune: as many at once as fit, each in a process of its own.

Tune runs in a thread, so that the driver's main thread stays free to show how things are and to be interrupted. Tune's
own records go to a scratch folder and are thrown away: a sweep goes on from its folder.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune import Callback, CheckpointConfig, FailureConfig, RunConfig, Stopper, TuneConfig, Tuner
from ray.tune.experiment import Trial as TuneTrial

from sfora_ray.cluster.capacity import members_that_fit, need_per_worker, refuse_impossible, waited_in_vain
from sfora_ray.cluster.causes import last_line
from sfora_ray.cluster.facts import state_api_fault
from sfora_ray.cluster.leftovers import remove_orphaned_groups, wait_until_gone
from sfora_ray.cluster.proposals import NUMBER, VALUES, Proposals, tune_config
from sfora_ray.cluster.schedulers import build_scheduler
from sfora_ray.cluster.trial import TrialOrder, name_of, number_of, train_trial
from sfora_ray.config.schedulers import PbtOptions
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.errors import ResourceError, SforaError
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.told import told
from sfora_ray.sweep.trial import end_trial
from sfora_ray.training.environment import inherited

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_STOP = 30.0
_SECONDS_TO_ANSWER = 10
# A trial that holds nothing itself still needs a bundle: a byte of memory is what every node has.
_NEXT_TO_NOTHING = {"memory": 1.0}
# Tune's own files, pictures and handlers: all that they tell is in the sweep folder.
_QUIET = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "TUNE_MAX_PENDING_TRIALS_PG": "1",
    "TUNE_WARN_SLOW_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "3600",
    "RAY_AIR_NEW_OUTPUT": "0",
}


def trials_that_fit(config: SweepConfig) -> int:
    """Return how many trials run at a time on the cluster as it is.

    Raises:
        ResourceError: not even one does.
    """
    resources = config.pack.resources
    refuse_impossible(resources)
    fit = members_that_fit(resources)
    if resources.workers_per_member > 1:
        fit = max(1, fit // len(config.member_names()))
    return min(fit, config.max_concurrent_trials or fit)


def refuse_nesting_without_state_api(config: SweepConfig) -> None:
    """Prove that members of several workers can be trained within trials.

    Raises:
        ResourceError: Ray's State API does not answer, through which Train finds what stopped trials leave behind.
    """
    workers = config.pack.resources.workers_per_member
    if workers == 1:
        return
    fault = state_api_fault(seconds=_SECONDS_TO_ANSWER)
    if fault:
        raise ResourceError(
            f"pack.resources.workers_per_member: {workers} workers need Ray's State API, without which a trial that "
            f"is stopped early keeps its GPUs, but it does not answer ({fault}). Install `ray[default]` and start the "
            "cluster with its dashboard, or use 1 worker."
        )


def run_trials(sweep: SweepFolder, watch: Callable[[], None]) -> None:
    """Run what a sweep has left to do to its end, calling ``watch`` about twice a second.

    Raises:
        SforaError: Tune gave up, or no trial got the resources that it needs.
    """
    config = sweep.config()
    with tempfile.TemporaryDirectory(prefix="sfora-tune-", ignore_cleanup_errors=True) as scratch, _quiet():
        run = _Run(sweep, lambda stopper, callback: _tuner(sweep, Path(scratch), stopper, callback))
        run.start()
        try:
            while run.is_alive():
                run.join(_SECONDS_BETWEEN_LOOKS)
                if config.pack.resources.workers_per_member > 1:
                    remove_orphaned_groups()
                watch()
        finally:
            run.stop()
            if not wait_until_gone(_SECONDS_TO_STOP):
                _log.warning("trials: their processes still held resources %g s after the end", _SECONDS_TO_STOP)
        run.refuse_failure()


@contextmanager
def _quiet() -> Iterator[None]:
    with inherited(_QUIET), warnings.catch_warnings():
        # The thread of a trial that is replaced would live on in its process, with all its memory.
        warnings.filterwarnings("ignore", message="Consider boosting PBT performance by enabling `reuse_actors`")
        yield


def _tuner(sweep: SweepFolder, scratch: Path, stopper: Stopper, callback: Callback) -> Tuner:
    config = sweep.config()
    is_pbt = isinstance(config.scheduler, PbtOptions)
    nested = config.pack.resources.workers_per_member > 1
    order = TrialOrder(sweep=sweep.path.absolute(), working_dir=Path.cwd(), exploits=is_pbt)
    begun = _begun_together(sweep, config) if is_pbt else {}
    proposals = Proposals(sweep, config.searcher.build(config.search_space), config.num_trials)
    return Tuner(
        tune.with_resources(train_trial, _NEXT_TO_NOTHING if nested else need_per_worker(config.pack.resources)),
        param_space={"order": order.model_dump(mode="json"), **_population(begun)},
        tune_config=TuneConfig(
            search_alg=None if is_pbt else proposals,
            scheduler=build_scheduler(config, sweep.trials()),
            num_samples=1 if is_pbt else -1,
            max_concurrent_trials=trials_that_fit(config) if nested else config.max_concurrent_trials,
            trial_name_creator=_name,
            trial_dirname_creator=_name,
        ),
        run_config=RunConfig(
            name="trials",
            storage_path=str(scratch),
            stop=stopper,
            callbacks=[callback],
            failure_config=FailureConfig(max_failures=config.max_failures),
            checkpoint_config=CheckpointConfig(num_to_keep=None),
            verbose=0,
        ),
    )


def _name(trial: TuneTrial) -> str:
    return name_of(trial.config[NUMBER])


def _begun_together(sweep: SweepFolder, config: SweepConfig) -> dict[int, dict[str, Any]]:
    """Begin every trial of a population, and return what Tune is to hand to those that have not ended."""
    searcher = config.searcher.build(config.search_space)
    for number in range(config.num_trials or 0):
        if not sweep.trial(number).record_path.is_file():
            values = searcher.propose(number, told(sweep))
            assert values is not None, "the space is of numbers"
            sweep.begin_trial(number, values)
    return {trial.number: tune_config(trial.folder) for trial in sweep.trials() if trial.end is None}


def _population(begun: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    if not begun:
        return {}
    return {
        NUMBER: tune.grid_search(list(begun)),
        VALUES: tune.sample_from(lambda config: begun[config[NUMBER]][VALUES]),
    }


class _Run(threading.Thread):
    """Tune at work."""

    def __init__(self, sweep: SweepFolder, build: Callable[[Stopper, Callback], Tuner]) -> None:
        super().__init__(name="tune", daemon=True)
        self._stopper = _StopAll()
        self._tuner = build(self._stopper, _Records(sweep, self._stopper))
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Run Tune to its end."""
        try:
            self._tuner.fit()
        except BaseException as error:  # of a thread: it is raised where somebody hears it
            self._failure = error

    def stop(self) -> None:
        """End all trials, if they have not ended."""
        self._stopper.asked = True
        self.join(_SECONDS_TO_STOP)

    def refuse_failure(self) -> None:
        """Raise ``SforaError`` if Tune could not do its work."""
        if isinstance(self._failure, SforaError):
            raise self._failure
        if self._failure is not None:
            raise SforaError(f"Ray Tune gave up: {last_line(self._failure)}") from self._failure


class _StopAll(Stopper):
    """Ends every trial once it is asked to."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return that a single trial is to go on."""
        del trial_id, result
        return False

    def stop_all(self) -> bool:
        """Return whether all are to end."""
        return self.asked


class _Records(Callback):
    """Records the ends that a trial's process does not see, and gives up where none gets room."""

    def __init__(self, sweep: SweepFolder, stopper: _StopAll) -> None:
        self._sweep = sweep
        self._manifest = sweep.manifest()
        self._stopper = stopper
        self._last_room = time.monotonic()

    def on_trial_complete(self, iteration: int, trials: list[TuneTrial], trial: TuneTrial, **info: Any) -> None:
        """Record that the scheduler has stopped a trial, if nothing else has ended it."""
        del iteration, trials, info
        if self._stopper.asked:
            return
        folder = self._sweep.trial(number_of(str(trial)))
        rounds = folder.rounds()
        if rounds:
            scheduler, last = self._manifest.config.scheduler.name, rounds[-1]
            reason = f"by {scheduler} after epoch {last.epoch}, at {last.value:.4f}"
            end_trial(folder, self._manifest, "stopped", reason)

    def on_trial_error(self, iteration: int, trials: list[TuneTrial], trial: TuneTrial, **info: Any) -> None:
        """Record that a trial could not be trained, as often as it was tried."""
        del iteration, trials, info
        error = trial.get_pickled_error() or trial.get_error()
        reason = "it left no word" if error is None else last_line(error)
        end_trial(self._sweep.trial(number_of(str(trial))), self._manifest, "failed", reason)

    def on_step_begin(self, iteration: int, trials: list[TuneTrial], **info: Any) -> None:
        """Give up if trials wait and none runs for too long; raises ``ResourceError`` that says what is missing."""
        del iteration, info
        resources = self._manifest.config.pack.resources
        waits = any(trial.status == TuneTrial.PENDING for trial in trials)
        if not waits or any(trial.status == TuneTrial.RUNNING for trial in trials):
            self._last_room = time.monotonic()
        if time.monotonic() - self._last_room > resources.schedule_timeout_seconds:
            raise ResourceError(
                f"trials: {waited_in_vain(resources)}. Free or add nodes, then run "
                f"`sfora-ray sweep resume {self._sweep.path}`."
            )
