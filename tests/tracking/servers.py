"""Real MLflow servers that tests stop, start and stand in the way of."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """An MLflow server of its own process on one port of the loopback, with one worker."""

    def __init__(self, folder: Path, store: str = "") -> None:
        self.uri = f"http://127.0.0.1:{free_port()}"
        self._folder = folder
        self._store = store or f"sqlite:///{folder}/mlflow.db"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it answers."""
        if self._process is not None:
            return
        log = self._folder / "server.log"
        with log.open("ab") as stream:
            self._process = subprocess.Popen(self._command(), cwd=self._folder, stdout=stream, stderr=stream)
        for _ in range(720):
            with suppress(OSError), urllib.request.urlopen(f"{self.uri}/health", timeout=2):
                return
            assert self._process.poll() is None, log.read_text()[-2000:]
            time.sleep(0.25)
        raise AssertionError(log.read_text()[-2000:])

    def stop(self) -> None:
        """End the server and its worker: SIGTERM, as an orderly restart does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=30)
            self._process = None

    def _command(self) -> list[str]:
        host, port = self.uri.removeprefix("http://").split(":")
        where = ["--host", host, "--port", port, "--workers", "1"]
        store = ["--backend-store-uri", self._store, "--artifacts-destination", str(self._folder / "files")]
        return [sys.executable, "-m", "mlflow", "server", *where, *store]


@contextmanager
def serving(folder: Path, store: str = "") -> Iterator[Server]:
    server = Server(folder, store)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@dataclass
class Proxy:
    """Stands before a server and keeps answers from the client after the server has carried the request out."""

    uri: str
    victim: str = ""
    """Part of the paths whose answers are kept back; none if empty."""
    seconds: float | None = None
    """For how long they are; for ever if None."""

    def drop(self, victim: str) -> None:
        """Let the answers to such requests be lost."""
        self.victim, self.seconds = victim, None

    def delay(self, victim: str, seconds: float) -> None:
        """Keep the answers to such requests back for so long."""
        self.victim, self.seconds = victim, seconds

    def spare(self) -> None:
        """Pass everything on again."""
        self.victim = ""


@contextmanager
def proxied(target: str) -> Iterator[Proxy]:
    proxy = Proxy(uri="")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on(None)

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

        def _pass_on(self, body: bytes | None) -> None:
            kind = {"Content-Type": self.headers["Content-Type"] or "application/json"}
            request = urllib.request.Request(f"{target}{self.path}", body, kind, method=self.command)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    status, content = answer.status, answer.read()
            except HTTPError as error:
                with error:
                    status, content = error.code, error.read()
            if self._is_dropped():
                self.close_connection = True
                return
            with suppress(OSError):  # the client has given up meanwhile
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def _is_dropped(self) -> bool:
            if not proxy.victim or proxy.victim not in self.path:
                return False
            if proxy.seconds is None:
                return True
            time.sleep(proxy.seconds)
            return False

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        proxy.uri = f"http://127.0.0.1:{httpd.server_port}"
        try:
            yield proxy
        finally:
            httpd.shutdown()
            thread.join()


@contextmanager
def postgres() -> Iterator[str]:
    """Yield the address of a database in a PostgreSQL of its own, which never runs as root and so not as we do then."""
    programs, user, port = _postgres_programs(), None if os.geteuid() else _another_user(), free_port()
    # Not below pytest's folders, which no other user can enter.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        if user is not None:
            shutil.chown(folder, user)
        data = Path(folder) / "data"
        _run([programs / "initdb", "-D", data, "-U", "sfora", "-A", "trust", "--no-sync"], user)
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        _run([programs / "pg_ctl", "-D", data, "-l", data / "log", "-o", options, "-w", "start"], user)
        try:
            yield f"postgresql+psycopg2://sfora@127.0.0.1:{port}/postgres"
        finally:
            _run([programs / "pg_ctl", "-D", data, "-m", "fast", "-w", "stop"], user)


def _postgres_programs() -> Path:
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").is_file() and (place / "pg_ctl").is_file():
            return place
    pytest.skip("PostgreSQL is not installed")


def _another_user() -> str:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    pytest.skip("PostgreSQL does not run as root, and there is no other user")


def _run(command: list[str | Path], user: str | None) -> None:
    ended = subprocess.run(
        [str(part) for part in command], user=user, cwd="/", capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
