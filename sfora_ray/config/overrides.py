"""``a.b.c=value`` on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfora_ray.config.problems import shortened
from sfora_ray.config.yaml_text import parse_yaml
from sfora_ray.errors import ConfigError


def apply_overrides(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return ``values`` with each ``dotted.path=YAML value`` set; a number in a path indexes a list.

    Raises:
        ConfigError: an override has no ``=``, or walks through something that has no such place.
    """
    result: dict[str, Any] = _copy(values)
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals or not path:
            raise ConfigError(f"override '{override}': must be path=value, for instance optimizer.lr=1e-4.")
        place = f"override '{override}'"
        _set(result, path.split("."), parse_yaml(text, place=place), place)
    return result


def with_values(values: dict[str, Any], changes: Mapping[str, Any], *, place: str) -> dict[str, Any]:
    """Return ``values`` with the value of each dotted path set, in the given order.

    Raises:
        ConfigError: a path walks through something that has no such place; the message has ``place`` and the path.
    """
    result: dict[str, Any] = _copy(values)
    for path, value in changes.items():
        _set(result, path.split("."), _copy(value), f"{place}.{path}")
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value


def _set(values: dict[str, Any], path: list[str], value: Any, source: str) -> None:
    place: Any = values
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else _item(place, key, source)
    if isinstance(place, dict):
        place[path[-1]] = value
        return
    _item(place, path[-1], source)
    place[int(path[-1])] = value


def _item(place: Any, key: str, source: str) -> Any:
    if not isinstance(place, list) or not key.isdecimal() or int(key) >= len(place):
        raise ConfigError(
            f"{source}: there is no '{key}' to set below {type(place).__name__} {shortened(place)}. "
            "Give the whole value instead."
        )
    return place[int(key)]
