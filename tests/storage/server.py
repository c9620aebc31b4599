"""A local S3 server that can be told to fail."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "packs"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDOFTHETESTS",
    "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

EXPIRED = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
DROPPED = 0
"""In place of a status: the connection is closed without an answer."""


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


class S3Server:
    """Moto behind a gate: faults in `faults` are given, one a request, before any request passes."""

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._gate, threaded=True, request_handler=_Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, name="s3")
        self._thread.start()
        self.faults: deque[tuple[int, str]] = deque()
        self.always: tuple[int, str] | None = None
        self.requests: list[str] = []
        self.before_get: deque[Callable[[], None]] = deque()
        """What happens, one a request, before a GET of an object is answered."""
        self.client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )
        self.client.create_bucket(Bucket=BUCKET)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def variables(self) -> dict[str, str]:
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.url}

    def keys(self, prefix: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", []) if not item["Key"].endswith("/")]

    def read(self, key: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return content

    def write(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def insert(self, key: str, content: bytes) -> None:
        """Write an object under a name that HTTP clients and servers would tidy up on the way."""
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(BUCKET, key, content)

    def backend_object(self, key: str) -> Any:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_object(BUCKET, key)

    def written(self) -> list[str]:
        """Keys of PUT and DELETE requests so far, in order."""
        return [line for line in self.requests if line.split()[0] in ("PUT", "DELETE")]

    def close(self) -> None:
        self.client.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _gate(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        self.requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO'].removeprefix(f'/{BUCKET}/')}")
        fault = self.faults.popleft() if self.faults else self.always
        if fault is None:
            if self.before_get and self.requests[-1].startswith("GET "):
                self.before_get.popleft()()
            answer: Iterable[bytes] = self._app(environ, start)
            return answer
        status, body = fault
        if status == DROPPED:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            return []
        headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
        start(f"{status} Fault", headers)
        return [body.encode()]


@contextmanager
def s3_server() -> Iterator[S3Server]:
    server = S3Server()
    try:
        yield server
    finally:
        server.close()
