"""``mlflow sync``: everything a run folder or a sweep folder says, told to a tracker that may have missed it."""

from __future__ import annotations

from sfora_ray.pack.ending import pack_status
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.sweep.ending import sweep_status
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.mirror import SweepMirror
from sfora_ray.tracking import MlflowOptions, TrackingOptions, patience
from sfora_ray.workflows.finish import tell_everything
from sfora_ray.workflows.tell_sweep import tell_sweep


def sync_run(run: RunFolder, *, uri: str | None) -> bool:
    """Tell MLflow at ``uri`` (the config's if None) about a run folder; return whether its runs were ended too.

    A pack that is being written goes on, and so do its runs.

    Raises:
        TrackerError: the server does not answer.
    """
    options = tracking_at(run.manifest().config.tracking, uri)
    under_way = run.is_written()
    with patience():
        tell_everything(run, Mirror(run, options.build()), options, None if under_way else pack_status(run))
    return not under_way


def sync_sweep(sweep: SweepFolder, *, uri: str | None) -> bool:
    """Tell MLflow at ``uri`` (the config's if None) about a sweep folder; return whether its runs were ended too.

    A sweep that goes on keeps its runs open.

    Raises:
        TrackerError: the server does not answer.
    """
    options = tracking_at(sweep.config().pack.tracking, uri)
    under_way = sweep.is_written()
    with patience():
        tell_sweep(sweep, SweepMirror(sweep, options.build()), None if under_way else sweep_status(sweep))
    return not under_way


def tracking_at(options: TrackingOptions, uri: str | None) -> MlflowOptions:
    """Return a config's tracker, at another address if one is given; MLflow's defaults where it has none."""
    known = options.model_dump() if isinstance(options, MlflowOptions) else {}
    return MlflowOptions.given({**known, **({"uri": uri} if uri else {})})
