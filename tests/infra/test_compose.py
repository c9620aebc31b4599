import re
from typing import Any

import pytest

from tests.infra.files import INFRA, ROOT, is_pinned, load, locked

COMPOSE = INFRA / "compose"
SECRET = re.compile("PASSWORD|SECRET|TOKEN|ACCESS_KEY")


def services() -> dict[str, Any]:
    return dict(load("compose/compose.yaml")["services"])


def variables() -> list[tuple[str, str]]:
    """Return every ``${NAME...}`` as its name and what follows."""
    text = (COMPOSE / "compose.yaml").read_text(encoding="utf-8")
    return re.findall(r"\$\{(\w+)([^}]*)\}", text)


@pytest.mark.parametrize("name", sorted(services()))
def test_a_service_is_pinned_healthy_and_on_loopback_only(name: str) -> None:
    service = services()[name]
    assert is_pinned(service["image"])
    assert service["healthcheck"]["test"]
    assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", []))


def test_volumes_are_named() -> None:
    named = set(load("compose/compose.yaml")["volumes"])
    used = {volume.split(":")[0] for service in services().values() for volume in service["volumes"]}
    assert used == named


def test_the_server_waits_for_its_database() -> None:
    assert services()["mlflow"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_no_secret_has_a_default() -> None:
    secrets = [(name, rest) for name, rest in variables() if SECRET.search(name)]
    assert ("POSTGRES_PASSWORD", ":?set it in .env") in secrets
    assert all(rest == ":-" or rest.startswith(":?") for _, rest in secrets)


def test_the_example_names_every_variable_and_fills_in_no_secret() -> None:
    lines = (COMPOSE / ".env.example").read_text(encoding="utf-8").splitlines()
    example = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert set(example) == {name for name, _ in variables()}
    assert not any(value for name, value in example.items() if SECRET.search(name))
    assert (COMPOSE / ".gitignore").read_text(encoding="utf-8") == ".env\n"


def test_allowed_hosts_name_the_service_with_and_without_its_port() -> None:
    hosts = services()["mlflow"]["environment"]["MLFLOW_SERVER_ALLOWED_HOSTS"]
    assert {"mlflow", "mlflow:5000", "localhost:*"} <= set(hosts.rstrip("}").split(":-")[1].split(","))


@pytest.mark.parametrize("name", ["docker/Dockerfile", "compose/mlflow.Dockerfile"])
def test_an_image_is_built_from_a_version_and_runs_without_root(name: str) -> None:
    text = (INFRA / name).read_text(encoding="utf-8")
    assert all(is_pinned(image) for image in re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    assert re.findall(r"^USER (\S+)", text, re.MULTILINE)[-1] not in ("root", "0")


def test_the_server_is_the_locked_mlflow() -> None:
    text = (COMPOSE / "mlflow.Dockerfile").read_text(encoding="utf-8")
    assert f"mlflow=={locked('mlflow')} " in text
    assert services()["mlflow"]["image"].endswith(f":{locked('mlflow')}")


def test_the_lock_is_exact_and_names_no_place() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    packages = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._+!-]+", line) for line in packages)
    assert len({line.split("==")[0].lower() for line in packages}) == len(packages)


def test_the_readme_names_every_file() -> None:
    readme = (INFRA / "README.md").read_text(encoding="utf-8")
    files = [path for path in INFRA.rglob("*") if path.suffix in (".yaml", "") and path.is_file()]
    named = [path for path in files if path.name not in (".gitignore", ".env.example")]
    assert named
    assert all(str(path.relative_to(INFRA)) in readme for path in named)
