"""MLflow without its telemetry, its banners and the migration log of its database.

Each setting is a default: what the user has set in the environment stands.
"""

from __future__ import annotations

import logging
import os

_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # MLflow would wait for minutes; what cannot be sent is already in the run folder and is sent again later.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


def quieten_mlflow() -> None:
    """Set the defaults; to be called before MLflow is imported, for it reads some of them only then."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    logging.getLogger("alembic").setLevel(logging.WARNING)
