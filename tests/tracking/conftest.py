import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfora_ray.tracking.quiet import quieten_mlflow

quieten_mlflow()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real MLflow server on loopback, over SQLite, with one worker."""
    folder = tmp_path_factory.mktemp("server")
    uri = f"http://127.0.0.1:{free_port()}"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(_command(uri, folder), cwd=folder, stdout=log, stderr=log)
    try:
        _wait(uri, process, folder / "server.log")
        yield uri
    finally:
        process.terminate()
        process.wait(timeout=30)


def _command(uri: str, folder: Path) -> list[str]:
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination",
        str(folder / "files"),
    ]
    host, port = uri.removeprefix("http://").split(":")
    return [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host",
        host,
        "--port",
        port,
        "--workers",
        "1",
        *store,
    ]


def _wait(uri: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(720):
        try:
            with urllib.request.urlopen(f"{uri}/health", timeout=2):
                return
        except OSError:
            assert process.poll() is None, log.read_text()[-2000:]
            time.sleep(0.25)
    raise AssertionError(log.read_text()[-2000:])
