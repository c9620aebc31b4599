from collections.abc import Iterator

import pytest

from sfora_ray.storage import ObjectStore
from tests.storage.server import BUCKET, S3Server, s3_server


@pytest.fixture(scope="module")
def running() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(running: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """The server, without faults, its address and credentials in the environment."""
    for name, value in running.variables.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    running.requests.clear()
    yield running
    running.faults.clear()
    running.before_get.clear()
    running.always = None


@pytest.fixture
def store(s3: S3Server, request: pytest.FixtureRequest) -> ObjectStore:
    """A place of its own for each test; pauses are short."""
    name = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return ObjectStore(f"s3://{BUCKET}/{name}", pauses_seconds=(0.01, 0.02, 0.03, 0.04), silence_seconds=2)
