"""An MLflow server of one's own, which can be made not to answer."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from sfora_ray.errors import SforaError

_SECONDS_TO_START = 120.0


@dataclass(frozen=True)
class TrackerServer:
    """A server process and its address."""

    uri: str
    process: psutil.Popen

    def freeze(self) -> None:
        """Let it answer nobody; connections stay open, as with a server that hangs."""
        for one in self._all():
            one.suspend()

    def thaw(self) -> None:
        """Let it go on."""
        for one in self._all():
            one.resume()

    def _all(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


@contextmanager
def tracker_server(folder: Path) -> Iterator[TrackerServer]:
    """Start an MLflow server over SQLite in ``folder``, on loopback, for the length of the block.

    Raises:
        SforaError: it did not answer in time; the message names its log.
    """
    port = _free_port()
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "files")),
    ]
    log = folder / "server.log"
    variables = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # else seven more processes, idle here
    with log.open("wb") as stream:
        process = psutil.Popen(command, stdout=stream, stderr=subprocess.STDOUT, cwd=folder, env=variables)
    server = TrackerServer(f"http://127.0.0.1:{port}", process)
    try:
        _wait_until_it_answers(server, port, log)
        yield server
    finally:
        server.thaw()
        children = process.children(recursive=True)
        process.terminate()
        psutil.wait_procs([process, *children], timeout=10)
        for one in children:
            if one.is_running():
                one.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_it_answers(server: TrackerServer, port: int, log: Path) -> None:
    end = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < end and server.process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.3)
    raise SforaError(f"MLflow server: did not answer within {_SECONDS_TO_START:g} s. See {log}.")
