"""``mlflow sync``: everything a run folder says, told to a tracker that may have missed it."""

from __future__ import annotations

from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.tracking import MlflowOptions
from sfora_ray.workflows.finish import tell_everything


def sync_run(run: RunFolder, *, uri: str | None) -> None:
    """Tell MLflow at ``uri`` (the config's if None) about a run folder.

    Raises:
        TrackerError: the server does not answer.
    """
    options = run.manifest().config.tracking
    if uri is not None or not isinstance(options, MlflowOptions):
        options = MlflowOptions(**({"uri": uri} if uri else {}))
    tracker = options.build()
    tracker.check()
    mirror = Mirror(run, tracker)
    mirror.open()
    tell_everything(run, mirror, options, "FINISHED" if run.summary_path.is_file() else "FAILED")
