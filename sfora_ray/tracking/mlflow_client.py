"""Runs mirrored to MLflow, through its client alone.

The fluent interface keeps an active run per thread and is never used. Every run carries the tag ``sfora.key``
and is found by it, so that opening, telling and closing again change nothing. One process writes to a run at
a time.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from sfora_ray.errors import TrackerError
from sfora_ray.tracking.address import absolute, artifact_folder, is_server
from sfora_ray.tracking.base import MetricPoint, OpenRun, RunStatus
from sfora_ray.tracking.curves import Last, new_points
from sfora_ray.tracking.limits import (
    MAX_METRICS,
    MAX_PARAM_LENGTH,
    MAX_PARAMS,
    MAX_TAG_LENGTH,
    batches,
    shortened,
)
from sfora_ray.tracking.quiet import patience
from sfora_ray.tracking.reach import probe
from sfora_ray.tracking.secrets import HIDDEN, without_secrets

KEY_TAG = "sfora.key"
PARENT_TAG = "mlflow.parentRunId"
MAX_DATASET_NAME = 500
MAX_DATASET_DIGEST = 36
_TEXTS = (".json", ".html", ".md", ".csv", ".svg", ".txt", ".log")
_PAUSES_SECONDS = (0.0, 0.1, 0.3, 1.0, 3.0)


class MlflowTracker:
    """Mirrors runs to one MLflow experiment.

    Args:
        uri: a server or a database; a relative SQLite file is taken from the present working directory.
        experiment: name of the experiment, made if there is none.
    """

    def __init__(self, *, uri: str, experiment: str) -> None:
        self._uri = absolute(uri)
        self._shown_uri = without_secrets(self._uri, self._uri)
        self._experiment_name = experiment
        self._last: dict[str, dict[str, Last]] = {}

    def check(self) -> None:
        """Prove within seconds that the server answers; raises ``TrackerError`` with the way out."""
        with self._told("does not answer"):
            probe(self._uri)
            self._client.search_experiments(max_results=1)

    def open_run(self, key: str, name: str, *, parent: str | None, tags: Mapping[str, str]) -> str:
        """Return the id of the run with this key, made if there is none; its state becomes RUNNING."""
        all_tags = {**tags, KEY_TAG: key, **({} if parent is None else {PARENT_TAG: parent})}
        with self._told(f"refused to open run '{key}'"):
            if not self._with_key(key):
                self._create(name, all_tags)
            run, *others = self._with_key(key)
            for other in others:
                self._client.set_terminated(other, "KILLED")
                self._client.delete_run(other)
            self._client.update_run(run, status="RUNNING", name=name)
            self.set_tags(run, all_tags)
            return run

    def running(self, prefix: str = "") -> Sequence[OpenRun]:
        """Return the runs of ours that are shown as RUNNING and whose key starts with ``prefix``, oldest first."""
        with self._told("did not list its runs"):
            experiment = self._find_experiment()
            found = [] if experiment is None else self._search("attributes.status = 'RUNNING'", experiment)
        ours = [_open_run(run) for run in found if KEY_TAG in run.data.tags]
        return [run for run in ours if run.key.startswith(prefix)]

    def tags(self, run: str) -> Mapping[str, str]:
        """Return a run's tags."""
        with self._told("did not tell a run's tags"):
            return dict(self._client.get_run(run).data.tags)

    def log_params(self, run: str, params: Mapping[str, str]) -> None:
        """Record parameters; a value over 6000 characters is told by its digest.

        Raises:
            TrackerError: a parameter is already there with another value.
        """
        wanted = shortened(self._concealed(params), MAX_PARAM_LENGTH)
        with self._told("refused parameters"):
            present = self._client.get_run(run).data.params
            self._refuse_changes(present, wanted)
            absent = [Param(name, value) for name, value in wanted.items() if name not in present]
            for batch in batches(absent, MAX_PARAMS):
                self._client.log_batch(run, params=batch)

    def set_tags(self, run: str, tags: Mapping[str, str]) -> None:
        """Set or replace tags; an empty value takes the tag away, one over 8000 characters is told by its digest."""
        wanted = {name: value for name, value in self._concealed(tags).items() if value}
        entities = [RunTag(name, value) for name, value in shortened(wanted, MAX_TAG_LENGTH).items()]
        with self._told("refused tags"):
            for batch in batches(entities, MAX_PARAMS):
                self._client.log_batch(run, tags=batch)
            if len(wanted) < len(tags):
                for name in self.tags(run).keys() & (tags.keys() - wanted.keys()):
                    self._client.delete_tag(run, name)

    def log_metrics(self, run: str, points: Sequence[MetricPoint]) -> None:
        """Append points; those at or before the last step already there are left out, key by key."""
        with self._told("refused metrics"):
            fresh = new_points(points, self._last_of(run))
            # Taken out while on its way: if a batch fails, only the server knows how far it came.
            last = self._last.pop(run)
            for batch in batches(fresh, MAX_METRICS):
                self._client.log_batch(run, metrics=[_metric(point) for point in batch])
            last.update({point.key: Last(point.step, point.value) for point in fresh})
            self._last[run] = last

    def log_dataset(self, run: str, name: str, digest: str, context: str) -> None:
        """Record which data set the run used; of the digest 36 characters are kept."""
        if not 0 < len(name) <= MAX_DATASET_NAME:
            raise TrackerError(
                f"MLflow data set: a name must have 1 to {MAX_DATASET_NAME} characters, got {len(name)}. Shorten it."
            )
        source = json.dumps({"name": name, "digest": digest})
        dataset = Dataset(name, digest[:MAX_DATASET_DIGEST], "sfora", source)
        with self._told("refused a data set"):
            self._client.log_inputs(run, [DatasetInput(dataset, [InputTag("mlflow.data.context", context)])])

    def log_file(self, run: str, path: Path, folder: str = "") -> None:
        """Store a file as an artifact below ``folder``; secrets are taken out of a text."""
        if not path.is_file():
            raise TrackerError(f"MLflow artifact: there must be such a file, got '{path}'. Write it first.")
        with self._told(f"refused the file '{path.name}'"), patience(), _harmless(path, self._uri) as harmless:
            self._client.log_artifact(run, str(harmless), folder or None)

    def close_run(self, run: str, status: RunStatus) -> None:
        """End the run with its final state."""
        with self._told("refused to close a run"):
            self._client.set_terminated(run, status)

    @cached_property
    def _client(self) -> MlflowClient:
        return MlflowClient(tracking_uri=self._uri)

    @cached_property
    def _experiment(self) -> str:
        """Id of the experiment. Of packs that start together all may try to make it; one does."""
        for pause in _PAUSES_SECONDS:
            time.sleep(pause)
            experiment = self._find_experiment() or self._try_to_make_experiment()
            if experiment is not None:
                return experiment
        raise TrackerError(
            f"MLflow {self._shown_uri}: experiment '{self._experiment_name}' can be neither found nor made, "
            "got 'already exists' each time. Look for a deleted one of that name, or choose another name."
        )

    def _find_experiment(self) -> str | None:
        found = self._client.get_experiment_by_name(self._experiment_name)
        if found is not None and found.lifecycle_stage != "active":
            raise TrackerError(
                f"MLflow {self._shown_uri}: experiment must be active, got deleted "
                f"'{self._experiment_name}'. Restore it (mlflow experiments restore) or choose another name."
            )
        return None if found is None else str(found.experiment_id)

    def _try_to_make_experiment(self) -> str | None:
        folder = artifact_folder(self._uri, self._experiment_name)
        try:
            return str(self._client.create_experiment(self._experiment_name, artifact_location=folder))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            return None

    def _with_key(self, key: str) -> list[str]:
        """Return the runs of this key, the oldest first; there should be one at most."""
        assert "'" not in key, "keys are made of digests and numbers"
        found = self._search(f"tags.`{KEY_TAG}` = '{key}'", self._experiment)
        return [str(run.info.run_id) for run in found]

    def _search(self, wanted: str, experiment: str) -> list[Run]:
        found: list[Run] = []
        page: str | None = None
        while page is None or page:
            some = self._client.search_runs([experiment], wanted, page_token=page)
            found.extend(some)
            page = some.token or ""
        # Not the server's order: two processes must agree about runs of the same millisecond.
        return sorted(found, key=lambda run: (run.info.start_time, run.info.run_id))

    def _create(self, name: str, tags: Mapping[str, str]) -> None:
        told = shortened({key: value for key, value in self._concealed(tags).items() if value}, MAX_TAG_LENGTH)
        self._client.create_run(self._experiment, run_name=name, tags=told)

    def _concealed(self, values: Mapping[str, str]) -> dict[str, str]:
        return {name: without_secrets(value, self._uri) for name, value in values.items()}

    def _last_of(self, run: str) -> dict[str, Last]:
        if run not in self._last:
            metrics = self._client.get_run(run).data.to_proto().metrics
            self._last[run] = {metric.key: Last(metric.step, metric.value) for metric in metrics}
        return self._last[run]

    def _refuse_changes(self, present: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        # What is hidden depends on the secrets of the day, so a value with a hidden part is compared with nothing.
        known = {name: value for name, value in present.items() if HIDDEN not in value + wanted.get(name, "")}
        changed = sorted(name for name, value in wanted.items() if known.get(name, value) != value)
        if changed:
            name = changed[0]
            raise TrackerError(
                f"MLflow parameter '{name}': a value once written stays, got {wanted[name]!r:.80} after "
                f"{present[name]!r:.80}. Start a new run for a changed configuration."
            )

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Turn every failure of MLflow into one error of ours, without the password of the address."""
        try:
            yield
        except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError, ImportError) as error:
            said = without_secrets(" ".join(str(error).split()), self._uri)
            message = f"MLflow {self._shown_uri}: {what}, got '{said:.400}'. {_way_out(said, self._uri)}"
            # The chained error would print the address, password and all, in a traceback.
            raise TrackerError(message) from None


def _open_run(run: Run) -> OpenRun:
    tags = run.data.tags
    started = int(run.info.start_time)
    return OpenRun(run.info.run_id, tags[KEY_TAG], run.info.run_name, tags.get(PARENT_TAG), started, tags)


@contextmanager
def _harmless(path: Path, uri: str) -> Iterator[Path]:
    """Yield the file itself, or, if it is a text that holds a secret, a copy of the same name without it."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.suffix in _TEXTS else ""
    told = without_secrets(text, uri)
    if told == text:
        yield path
        return
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / path.name
        copy.write_text(told, encoding="utf-8", errors="surrogateescape")
        yield copy


def _metric(point: MetricPoint) -> Metric:
    return Metric(point.key, point.value, point.timestamp_ms, point.step)


def _way_out(said: str, uri: str) -> str:
    if "Invalid Host header" in said:
        return "Start the server with --allowed-hosts naming this host, with and without its port."
    if "HTTP 401" in said or "error code 401" in said or "HTTP 403" in said or "error code 403" in said:
        return "Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."
    if "No module named" in said:
        return "Install the driver of this database."
    if "Permission denied" in said or "Read-only file system" in said:
        return "Make the folder writable; a server must be started with --artifacts-destination to take files."
    if is_server(uri):
        return "Start the server (mlflow server), correct tracking.uri, or choose tracking.name=none."
    return "Correct tracking.uri or choose tracking.name=none."
