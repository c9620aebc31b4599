"""From a YAML file to a :class:`PackConfig`: every problem in one error, each with its place and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sfora_ray.config.overrides import apply_overrides
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.problems import describe
from sfora_ray.config.truths import truths_for_numbers
from sfora_ray.config.yaml_text import parse_yaml
from sfora_ray.errors import ConfigError


def load_config(path: Path, overrides: Sequence[str] = ()) -> PackConfig:
    """Read, override and check a pack configuration.

    Raises:
        ConfigError: the file is absent, is not YAML, or has any number of problems, all listed.
    """
    return build_config(apply_overrides(read_values(path), overrides), place=str(path))


def build_config(values: dict[str, Any], *, place: str) -> PackConfig:
    """Check plain values against the configuration's types.

    Raises:
        ConfigError: lists every problem.
    """
    try:
        config = PackConfig.model_validate(values)
    except ValidationError as error:
        raise problems_error(describe(error, PackConfig), place=place) from None
    if lines := truths_for_numbers(values, config.plain()):
        raise problems_error(lines, place=place)
    return config


def problems_error(lines: Sequence[str], *, place: str) -> ConfigError:
    """Return one error that lists every problem."""
    return ConfigError("\n".join([f"{place}: {len(lines)} problem(s)", *(f"  - {line}" for line in lines)]))


def read_values(path: Path) -> dict[str, Any]:
    """Return the keys and values of a YAML file, unchecked.

    Raises:
        ConfigError: the file is absent, or is not YAML with keys and values at its top.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: no readable config file ({error}). Give the path of a YAML file.") from error
    values = parse_yaml(text, place=str(path))
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must hold keys and values at its top, got {type(values).__name__}.")
    return values
