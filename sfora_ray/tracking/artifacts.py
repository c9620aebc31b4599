"""The records of a pack as MLflow keeps them: ``summary.json`` and ``manifest.json`` of its parent run."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfora_ray.errors import InputError, TrackerError
from sfora_ray.files import read_json
from sfora_ray.tracking.address import absolute
from sfora_ray.tracking.mlflow import MlflowOptions
from sfora_ray.tracking.quiet import patience
from sfora_ray.tracking.secrets import without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

SUMMARY, MANIFEST = "summary.json", "manifest.json"


@dataclass(frozen=True)
class PackRecords:
    """What MLflow has of a pack.

    Attributes:
        run: id of the pack's parent run.
        summary: JSON of ``summary.json``.
        manifest: JSON of ``manifest.json``.
    """

    run: str
    summary: Any
    manifest: Any


def is_run_id(text: str) -> bool:
    """Return whether a text is an MLflow run id: 32 hexadecimal digits."""
    return re.fullmatch(r"[0-9a-f]{32}", text) is not None


def pack_records(uri: str, run_id: str) -> PackRecords:
    """Fetch the records of the pack that a run is the parent or a child of.

    Raises:
        TrackerError: the server does not answer.
        InputError: there is no such run, it is not of a pack, or it has no such files yet.
    """
    MlflowOptions.given({"uri": uri}).build().check()
    # Loaded here, for the command that reads folders alone needs no MLflow.
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=absolute(uri))
    parent = _pack_run(client, uri, run_id)
    with tempfile.TemporaryDirectory() as scratch, patience():
        summary, manifest = (_artifact(client, uri, parent, name, Path(scratch)) for name in (SUMMARY, MANIFEST))
    return PackRecords(parent, summary, manifest)


def _pack_run(client: MlflowClient, uri: str, run_id: str) -> str:
    """Return the id of the run, or of the one above it, that is a pack's."""
    from sfora_ray.tracking.mlflow_client import PARENT_TAG

    wanted: str | None = run_id
    while wanted is not None:
        tags = _run(client, uri, wanted).data.tags
        if tags.get("sfora.kind") == "pack":
            return wanted
        wanted = tags.get(PARENT_TAG)
    raise InputError(
        f"MLflow {_shown(uri)}: run {run_id} is of no pack, nor is one above it. Give the id of a pack's run."
    )


def _run(client: MlflowClient, uri: str, run_id: str) -> Run:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_run(run_id)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            raise InputError(
                f"MLflow {_shown(uri)}: must have the run, got no run {run_id}. Give another with --tracking."
            ) from None
        raise _fault(uri, "did not tell a run", error) from None


def _artifact(client: MlflowClient, uri: str, run_id: str, name: str, folder: Path) -> Any:
    """Return the JSON of an artifact; whatever a file store raises means that it is not to be had."""
    from mlflow.exceptions import MlflowException

    try:
        names = {file.path for file in client.list_artifacts(run_id)}
        if name not in names:
            raise InputError(
                f"MLflow {_shown(uri)}: run {run_id} has no {name} yet. Let its pack end, or compare its run folder."
            )
        return read_json(Path(client.download_artifacts(run_id, name, str(folder))))
    except (MlflowException, OSError) as error:
        raise _fault(uri, f"did not give {name} of run {run_id}", error) from None


def _fault(uri: str, what: str, error: Exception) -> TrackerError:
    said = without_secrets(" ".join(str(error).split()), uri)
    return TrackerError(
        f"MLflow {_shown(uri)}: {what}, got '{said:.400}'. See that its files can be read, or give the run folder."
    )


def _shown(uri: str) -> str:
    return without_secrets(uri, uri)
