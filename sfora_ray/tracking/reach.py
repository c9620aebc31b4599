"""A proof, within seconds, that a tracker's address answers.

MLflow retries a refused database for up to an hour and a silent server for minutes; these probes come first.
"""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mlflow.utils.credentials import get_default_host_creds
from mlflow.utils.rest_utils import http_request

from sfora_ray.tracking.address import host_and_port, is_server, sqlite_file

PATIENCE_SECONDS = 5


def probe(uri: str) -> None:
    """Reach the server or the database once.

    Raises:
        OSError: nothing answers, or it answers with an HTTP error; the message has its words.
        sqlite3.Error: the file is no SQLite database or cannot be opened.
        MlflowException: the request failed on its way.
    """
    file = sqlite_file(uri)
    if file is not None:
        _probe_sqlite(file)
    elif is_server(uri):
        _probe_server(uri)
    else:
        with socket.create_connection(host_and_port(uri), timeout=PATIENCE_SECONDS):
            pass


def _probe_sqlite(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file, timeout=PATIENCE_SECONDS)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("PRAGMA schema_version").fetchone()
        connection.rollback()


@dataclass(frozen=True)
class Answer:
    """What a server said, whatever its HTTP status."""

    status: int
    content_type: str
    text: str


def _probe_server(uri: str) -> None:
    answer = ask_server(uri, "/api/2.0/mlflow/experiments/search", "POST", json={"max_results": 1})
    if answer.status != 200 or "json" not in answer.content_type:
        raise OSError(f"HTTP {answer.status} {answer.text[:200]}")


def ask_server(uri: str, path: str, method: str, json: Mapping[str, int] | None = None) -> Answer:
    """Return a server's answer to one request, asked once, within seconds.

    Raises:
        MlflowException: the request failed on its way.
    """
    response = http_request(  # type: ignore[no-untyped-call]
        get_default_host_creds(uri),  # type: ignore[no-untyped-call]
        path,
        method,
        max_retries=0,
        timeout=PATIENCE_SECONDS,
        raise_on_status=False,
        json=json,
    )
    return Answer(response.status_code, response.headers.get("Content-Type", ""), response.text)
