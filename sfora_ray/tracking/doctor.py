"""One byte to MLflow and back: proof that runs, metrics and files of a pack will arrive.

A server may answer every question and yet lose each file, because it hands out a folder of its own machine that its
clients then try to write to; only a file that went there and came back shows otherwise.
"""

from __future__ import annotations

import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

from sfora_ray.errors import TrackerError
from sfora_ray.tracking.address import absolute, conceal, is_server
from sfora_ray.tracking.mlflow_client import MlflowTracker
from sfora_ray.tracking.reach import ask_server

_BYTE = b"?"


@dataclass(frozen=True)
class TrackerFacts:
    """What was found out about MLflow.

    Attributes:
        version: of the server; empty where a database is written directly.
        artifacts: where the files of the experiment go.
        made_experiment: whether the experiment was made for the proof.
    """

    version: str
    artifacts: str
    made_experiment: bool


def prove_artifacts(uri: str, experiment: str) -> TrackerFacts:
    """Send a file of one byte to a run of the experiment, fetch it, and delete file and run.

    Raises:
        TrackerError: MLflow does not answer, or the byte did not go up, come back, or go away.
    """
    tracker = MlflowTracker(uri=uri, experiment=experiment)
    tracker.check()
    client = MlflowClient(tracking_uri=absolute(uri))
    made = client.get_experiment_by_name(experiment) is None
    run = tracker.open_run(f"doctor-{secrets.token_hex(6)}", "doctor", parent=None, tags={})
    try:
        artifacts = _there_and_back(tracker, client, run, uri)
    finally:
        # Without a server's right to delete, a finished run named "doctor" stays: no reason to call it sick.
        with suppress(MlflowException, TrackerError):
            tracker.close_run(run, "FINISHED")
            client.delete_run(run)
    return TrackerFacts(_server_version(uri), conceal(artifacts, uri), made)


def _there_and_back(tracker: MlflowTracker, client: MlflowClient, run: str, uri: str) -> str:
    with tempfile.TemporaryDirectory(prefix="sfora-doctor-") as folder:
        sent = Path(folder) / "sent" / "one-byte.txt"
        sent.parent.mkdir()
        sent.write_bytes(_BYTE)
        tracker.log_file(run, sent)
        try:
            fetched = Path(client.download_artifacts(run, sent.name, folder)).read_bytes()
            place = str(client.get_run(run).info.artifact_uri)
            files = get_artifact_repository(place, tracking_uri=absolute(uri))
            files.delete_artifacts(sent.name)  # type: ignore[no-untyped-call]
        except (MlflowException, OSError, NotImplementedError) as error:
            said = conceal(" ".join(str(error).split()), uri)
            raise TrackerError(
                f"MLflow {conceal(uri, uri)}: a file of one byte went up but did not come back or cannot be deleted, "
                f"got '{said:.300}'. See who may read and delete where the server keeps its files "
                "(--artifacts-destination)."
            ) from None
    if fetched != _BYTE:
        raise TrackerError(
            f"MLflow {conceal(uri, uri)}: the byte {_BYTE!r} was sent, got back {fetched[:20]!r}. "
            "See what stands between this machine and the server's files."
        )
    return place.rpartition(f"/{run}/")[0] or place


def _server_version(uri: str) -> str:
    if not is_server(uri):
        return ""
    answer = ask_server(uri, "/version", "GET")
    return answer.text.strip()[:40] if answer.status == 200 else "unknown"
