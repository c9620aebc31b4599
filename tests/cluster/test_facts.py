import platform
import shutil
import socket
import time
from pathlib import Path

import pytest
import ray
import torch

from sfora_ray.cluster.facts import TokenSource, node_facts, state_api_fault, token_source
from sfora_ray.cluster.reach import refuse_silent
from sfora_ray.errors import ResourceError

SECRET = "0123456789abcdef"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".ray").mkdir()
    (tmp_path / "given").write_text(SECRET)
    (tmp_path / "empty").write_text("\n")
    return tmp_path


@pytest.mark.parametrize(
    ("variables", "usual", "expected"),
    [
        ({}, False, TokenSource("", "")),
        ({}, True, TokenSource("", "{home}/.ray/auth_token")),
        ({"RAY_AUTH_MODE": "Token"}, True, TokenSource("token", "{home}/.ray/auth_token")),
        ({"RAY_AUTH_TOKEN": SECRET, "RAY_AUTH_TOKEN_PATH": "{home}/absent"}, True, TokenSource("", "RAY_AUTH_TOKEN")),
        ({"RAY_AUTH_TOKEN": ""}, False, TokenSource("", "")),
        ({"RAY_AUTH_TOKEN_PATH": "{home}/given"}, True, TokenSource("", "RAY_AUTH_TOKEN_PATH ({home}/given)")),
        (
            {"RAY_AUTH_TOKEN_PATH": "{home}/empty"},
            True,
            TokenSource("", "RAY_AUTH_TOKEN_PATH ({home}/empty)", "the file is empty"),
        ),
        (
            {"RAY_AUTH_TOKEN_PATH": "{home}/absent"},
            True,
            TokenSource(
                "", "RAY_AUTH_TOKEN_PATH ({home}/absent)", "the file cannot be read (No such file or directory)"
            ),
        ),
    ],
)
def test_the_token_is_looked_for_in_the_order_of_ray_and_never_told(
    variables: dict[str, str], usual: bool, expected: TokenSource, home: Path
) -> None:
    if usual:
        (home / ".ray" / "auth_token").write_text(SECRET)
    found = token_source({name: value.format(home=home) for name, value in variables.items()}, home)
    assert found == TokenSource(expected.mode, expected.source.format(home=home), expected.fault)
    assert SECRET not in str(found)


def test_a_listener_is_found_and_its_absence_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        refuse_silent(f"127.0.0.1:{port}")
        refuse_silent(f"ray://localhost:{port}")
    start = time.monotonic()
    with pytest.raises(ResourceError, match=rf"RAY_ADDRESS: nobody listens there, got '127.0.0.1:{port}'.*ray start"):
        refuse_silent(f"127.0.0.1:{port}")
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("address", ["auto", "local", "127.0.0.1"])
def test_addresses_without_a_port_are_left_to_ray(address: str) -> None:
    refuse_silent(address)


def test_a_port_that_cannot_be_is_refused() -> None:
    with pytest.raises(ResourceError, match=r"got '127\.0\.0\.1:99999'"):
        refuse_silent("127.0.0.1:99999")


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_a_node_tells_what_it_has() -> None:
    (answer,) = node_facts(seconds=60)
    assert answer.fault == ""
    assert answer.value is not None
    assert answer.value.versions == {
        "python": platform.python_version(),
        "ray": ray.__version__,
        "torch": torch.__version__,
    }
    assert len(answer.value.gpus) == torch.cuda.device_count()
    assert answer.value.shared_memory_bytes == shutil.disk_usage("/dev/shm").total


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_a_cluster_without_its_dashboard_has_no_state_api() -> None:
    assert state_api_fault(seconds=5)
