"""MLflow without its telemetry, its banners, the migration log of its database, and its patience.

Each setting is a default: what the user has set in the environment stands.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # A busy server may ask for an hour's pause.
    "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false",
}
_QUICK = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "5"}
"""MLflow would wait for minutes; what cannot be told is in the run folder and is told again at the next turn."""
_PATIENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "120"}


def quieten_mlflow() -> None:
    """Set the defaults; to be called before MLflow is imported, for it reads some of them only then."""
    for name, value in {**_DEFAULTS, **_QUICK}.items():
        os.environ.setdefault(name, value)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # It tells of every retry; who asked tells once that the server is away.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)


@contextmanager
def patience() -> Iterator[None]:
    """Wait longer for each answer within the block: a file takes its time, and so does a store behind the server."""
    ours = {name: value for name, value in _PATIENT.items() if os.environ.get(name) == _QUICK[name]}
    os.environ.update(ours)
    try:
        yield
    finally:
        os.environ.update({name: _QUICK[name] for name in ours})
