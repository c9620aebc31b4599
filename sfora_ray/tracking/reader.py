"""What MLflow says of runs, read back: for judging, closing and comparing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlflow import MlflowClient

from sfora_ray.tracking.mlflow_client import KEY_TAG


@dataclass(frozen=True)
class TrackedRun:
    """A run as MLflow has it.

    Attributes:
        key: ours, ``<name>-<digest>/<part>``.
        status: RUNNING, FINISHED, FAILED or KILLED.
        tags: all of them.
        steps: of each metric, in the order they were stored.
        values: of each metric, likewise.
    """

    key: str
    status: str
    tags: Mapping[str, str]
    steps: Mapping[str, tuple[int, ...]]
    values: Mapping[str, tuple[float, ...]]


def tracked_runs(uri: str, experiment: str) -> list[TrackedRun]:
    """Return every run of ours in an experiment with its whole curves; an experiment that is not there has none."""
    client = MlflowClient(tracking_uri=uri)
    found = client.get_experiment_by_name(experiment)
    if found is None:
        return []
    runs = client.search_runs([found.experiment_id], f"tags.`{KEY_TAG}` != ''", max_results=10_000)
    return [_read(client, run.info.run_id) for run in runs]


def _read(client: MlflowClient, run_id: str) -> TrackedRun:
    run = client.get_run(run_id)
    curves = {key: client.get_metric_history(run_id, key) for key in run.data.metrics}
    return TrackedRun(
        key=run.data.tags[KEY_TAG],
        status=run.info.status,
        tags=run.data.tags,
        steps={key: tuple(point.step for point in points) for key, points in curves.items()},
        values={key: tuple(point.value for point in points) for key, points in curves.items()},
    )
