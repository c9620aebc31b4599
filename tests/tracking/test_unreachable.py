"""What a person reads when the tracker is not there, and how soon."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sfora_ray.errors import TrackerError
from sfora_ray.tracking.mlflow_client import MlflowTracker
from tests.tracking.servers import free_port


def complaint_of(uri: str) -> str:
    with pytest.raises(TrackerError) as caught:
        MlflowTracker(uri=uri, experiment="sfora").check()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return str(caught.value)


@contextmanager
def stub(status: int, body: str, kind: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


@pytest.mark.parametrize("scheme", ["http", "postgresql", "mysql+pymysql"])
def test_a_refused_connection_is_told_within_seconds_and_without_the_password(scheme: str) -> None:
    address = f"127.0.0.1:{free_port()}"
    start = time.monotonic()
    message = complaint_of(f"{scheme}://me:s3cret@{address}/mlflow")
    assert time.monotonic() - start < 20
    assert f"MLflow {scheme}://me:***@{address}/mlflow: does not answer" in message
    assert "tracking.name=none" in message
    assert "s3cret" not in message


def test_a_silent_server_is_given_up_within_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        message = complaint_of(uri)
    assert 4 < time.monotonic() - start < 20
    assert uri in message


@pytest.mark.parametrize(
    ("status", "body", "kind", "hint"),
    [
        (
            403,
            "Invalid Host header - possible DNS rebinding attack detected",
            "text/plain",
            "--allowed-hosts",
        ),
        (401, "You are not authenticated", "text/plain", "MLFLOW_TRACKING_USERNAME"),
        (200, "<html>another site</html>", "text/html", "correct tracking.uri"),
        (503, "busy", "text/plain", "HTTP 503 busy"),
    ],
)
def test_a_refusing_server_leads_to_the_way_out(status: int, body: str, kind: str, hint: str) -> None:
    with stub(status, body, kind) as uri:
        assert hint in complaint_of(uri)


def test_a_real_server_refuses_a_strange_host_name(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *rest, **named: resolve("127.0.0.1", *rest, **named))
    message = complaint_of(server.replace("127.0.0.1", "mlflow.example.com"))
    assert "Invalid Host header" in message
    assert "--allowed-hosts" in message


def test_a_file_that_is_no_database_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("no database at all " * 100)
    start = time.monotonic()
    assert "file is not a database" in complaint_of(f"sqlite:///{tmp_path}/mlflow.db")
    assert time.monotonic() - start < 20


def test_a_database_below_a_file_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    assert "does not answer" in complaint_of(f"sqlite:///{tmp_path}/plain/mlflow.db")
