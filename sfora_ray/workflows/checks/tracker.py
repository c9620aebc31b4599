"""MLflow: does it answer, and does a file of one byte go up, come back and go away."""

from __future__ import annotations

import re

from sfora_ray.tracking import MlflowOptions
from sfora_ray.workflows.checks.finding import Finding

# Models of a run of their own (`models:/m-...`) came with 3.0, and clients here are 3.5 or newer.
_OLDEST_SERVER = (3, 0)


def mlflow_files(options: MlflowOptions) -> list[Finding]:
    """Send a byte through MLflow to where it keeps its files, and back."""
    from sfora_ray.tracking.quiet import quieten_mlflow

    quieten_mlflow()
    from sfora_ray.tracking.doctor import prove_artifacts

    facts = prove_artifacts(options.uri, options.experiment)
    made = "made" if facts.made_experiment else "found"
    files = f"experiment '{options.experiment}' {made}; one byte up to {facts.artifacts}, down and deleted"
    return [
        judge_server(options.uri, facts.version),
        Finding("MLflow files", "green", files),
    ]


def judge_server(uri: str, version: str) -> Finding:
    """Judge an MLflow server by its version; a database has none."""
    if not version:
        return Finding("MLflow", "green", f"{uri}: a database written by this machine alone")
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if number and number < _OLDEST_SERVER:
        advice = "Upgrade the server to MLflow 3: it cannot keep the models of a pack"
        return Finding("MLflow", "red", f"{uri}: server {version}", advice)
    return Finding("MLflow", "green", f"{uri}: server {version}")
