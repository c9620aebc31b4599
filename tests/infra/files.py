"""The deployment files as tests read them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"


def load(name: str) -> Any:
    """Return one YAML file below ``infra/``."""
    return yaml.safe_load((INFRA / name).read_text(encoding="utf-8"))


def values_of(node: Any, key: str) -> Iterator[Any]:
    """Yield every value that stands under ``key``, at any depth."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from values_of(value, key)
    elif isinstance(node, list):
        for item in node:
            yield from values_of(item, key)


def locked(package: str) -> str:
    """Return the locked version of a package."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    (version,) = [line.split("==")[1] for line in lines if line.startswith(f"{package}==")]
    return version


def is_pinned(image: str) -> bool:
    """Return whether an image names a version."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag not in ("", "latest")
