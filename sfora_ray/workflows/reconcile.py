"""``mlflow reconcile``: what dead packs and sweeps left running is closed."""

from __future__ import annotations

from sfora_ray.errors import BusyError
from sfora_ray.pack.abandoned import Closed, close_abandoned, close_silent
from sfora_ray.pack.lock import lock_holder
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.sweep.abandoned import close_abandoned as close_abandoned_sweep
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.tracking import MlflowOptions, Tracker, TrackingOptions
from sfora_ray.workflows.sync import tracking_at


def reconcile_server(tracking: MlflowOptions, silent_minutes: float) -> list[Closed]:
    """Close, in one experiment, every running run of packs whose driver has been silent for so long.

    Raises:
        TrackerError: the server does not answer.
    """
    return close_silent(tracking.build(), silent_minutes)


def reconcile_run(run: RunFolder, *, uri: str | None, experiment: str | None) -> list[Closed]:
    """Close what is left running of one pack, each run with the state that its folder tells.

    Raises:
        BusyError: a process writes the folder, so the pack is alive.
        TrackerError: the server does not answer.
    """
    if run.is_written():
        raise BusyError(
            f"{run.path}: its pack is alive, got {lock_holder(run.path) or 'a lock'}. Leave it, or stop it first."
        )
    return close_abandoned(run, _tracker(run.manifest().config.tracking, uri, experiment))


def reconcile_sweep(sweep: SweepFolder, *, uri: str | None, experiment: str | None) -> list[Closed]:
    """Close what is left running of one sweep, each run with the state that its folder tells.

    Raises:
        BusyError: a process writes the folder, so the sweep is alive.
        TrackerError: the server does not answer.
    """
    if sweep.is_written():
        raise BusyError(
            f"{sweep.path}: its sweep is alive, got {lock_holder(sweep.path) or 'a lock'}. Leave it, or stop it first."
        )
    return close_abandoned_sweep(sweep, _tracker(sweep.config().pack.tracking, uri, experiment))


def _tracker(options: TrackingOptions, uri: str | None, experiment: str | None) -> Tracker:
    tracking = tracking_at(options, uri)
    if experiment is not None:
        tracking = tracking.model_copy(update={"experiment": experiment})
    return tracking.build()
