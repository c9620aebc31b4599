import importlib.resources
import json
from typing import Any

import jsonschema
import pytest

from tests.infra.files import is_pinned, load

FILES = ["ray-up/aws.yaml", "ray-up/local.yaml"]


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    text = importlib.resources.files("ray.autoscaler").joinpath("ray-schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft7Validator(json.loads(text))


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_valid(name: str, validator: jsonschema.Draft7Validator) -> None:
    assert [error.message for error in validator.iter_errors(load(name))] == []


def test_the_schema_refuses_an_unknown_field(validator: jsonschema.Draft7Validator) -> None:
    assert not validator.is_valid(load(FILES[0]) | {"workers": 3})


@pytest.mark.parametrize("name", FILES)
def test_images_tokens_and_drivers(name: str) -> None:
    cluster: Any = load(name)
    options = " ".join(cluster["docker"]["run_options"])
    assert is_pinned(cluster["docker"]["image"])
    assert "--shm-size=" in options
    assert "RAY_AUTH_MODE=token" in options
    assert ":/data" in options
    assert ":/runs" in options
    assert "/home/ray/.ray/auth_token" in cluster["file_mounts"]
    head = cluster["head_start_ray_commands"][-1]
    assert "--num-cpus=0" in head
    assert "'{\"sfora_driver\": 64}'" in head


def test_workers_on_aws_come_and_go() -> None:
    types = load("ray-up/aws.yaml")["available_node_types"]
    assert types["gpu"]["min_workers"] == 0
    assert types["head"]["resources"] == {"CPU": 0, "sfora_driver": 64}
    assert all(node["resources"].get("GPU", 1) != 0 for node in types.values())
