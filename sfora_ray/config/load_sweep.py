"""From a YAML file to a :class:`SweepConfig`: every problem of sweep, space and pack in one error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sfora_ray.config.load import problems_error, read_values
from sfora_ray.config.overrides import apply_overrides, with_values
from sfora_ray.config.problems import describe
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.config.sweep_checks import problems_of
from sfora_ray.config.truths import truths_for_numbers
from sfora_ray.config.yaml_text import parse_yaml
from sfora_ray.errors import ConfigError
from sfora_ray.search import DISTRIBUTIONS, root_of

_DOTTED_KEYS = ("space", "set")
_KEYS_OF_ENTRIES = {key for kind in DISTRIBUTIONS.values() for key in kind.model_fields}


def load_sweep(path: Path, overrides: Sequence[str] = ()) -> SweepConfig:
    """Read, override and check a sweep configuration and the pack it names.

    ``pack.a.b=c`` changes the pack after it is read and after ``set``; ``space.a.b.low=1`` and ``set.a.b=c`` find the
    entry that their path begins with.

    Raises:
        ConfigError: a file is absent or is not YAML, or there is any number of problems, all listed.
    """
    own = [one for one in overrides if not one.startswith("pack.")]
    values = _overridden(read_values(path), own)
    of_pack = [one.removeprefix("pack.") for one in overrides if one.startswith("pack.")]
    if "pack" in values:
        values["pack"] = _pack_values(values, path.parent, of_pack)
    return build_sweep(values, place=str(path))


def build_sweep(values: dict[str, Any], *, place: str) -> SweepConfig:
    """Check plain values, of which ``pack`` is the whole pack with everything set, against all that a sweep needs.

    Raises:
        ConfigError: lists every problem.
    """
    try:
        sweep = SweepConfig.model_validate(values)
    except ValidationError as error:
        lines = [*describe(error, SweepConfig), *_problems_of_the_rest(values, error.errors(include_url=False))]
        raise problems_error(lines, place=place) from None
    if problems := [*truths_for_numbers(values, sweep.model_dump(mode="json")), *problems_of(sweep)]:
        raise problems_error(problems, place=place)
    return sweep


def _problems_of_the_rest(values: dict[str, Any], errors: Sequence[ErrorDetails]) -> list[str]:
    """Return what else is wrong, seen once the faulty parts are left out; nothing if no sweep remains."""
    places = [detail["loc"] for detail in errors]
    faulty = {place[0] for place in places if len(place) == 1 or place[0] != "space"}
    entries = {str(place[1]) for place in places if len(place) > 1 and place[0] == "space"}
    rest = {key: value for key, value in values.items() if key not in faulty}
    if entries and isinstance(rest.get("space"), dict):
        # What lies within a faulty entry can only be judged together with it.
        entries |= {path for path in map(str, rest["space"]) if root_of(path, dict.fromkeys(entries))}
        rest["space"] = {path: one for path, one in rest["space"].items() if path not in entries}
    try:
        sweep = SweepConfig.model_validate(rest)
    except ValidationError:
        return []
    return problems_of(sweep, unseen=entries, unknown={str(key) for key in faulty})


def _pack_values(values: Mapping[str, Any], folder: Path, overrides: Sequence[str]) -> Any:
    """Return the pack's plain values, with what the sweep and the command line set."""
    pack, changes = values.get("pack"), values.get("set")
    if isinstance(pack, str):
        pack = read_values(folder / Path(pack).expanduser())
    if not isinstance(pack, dict):
        return pack
    if isinstance(changes, dict):
        pack = with_values(pack, {str(path): value for path, value in changes.items()}, place="set")
    return apply_overrides(pack, overrides)


def _overridden(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    for override in overrides:
        part, _, rest = override.partition(".")
        dotted = part in _DOTTED_KEYS and "=" in rest and isinstance(values.get(part) or {}, dict)
        values = _with_entry(values, part, rest, override) if dotted else apply_overrides(values, [override])
    return values


def _with_entry(values: dict[str, Any], part: str, rest: str, override: str) -> dict[str, Any]:
    """Set what lies at a path through a mapping whose keys have dots themselves."""
    path, _, text = rest.partition("=")
    if not path:
        raise ConfigError(f"override '{override}': must be path=value, for instance {part}.optimizer.lr=1e-4.")
    entries: dict[str, Any] = dict(values.get(part) or {})
    entry = root_of(path, entries)
    below = path[len(entry) + 1 :] if entry is not None else ""
    if entry is None or part != "space" or below.split(".")[0] not in _KEYS_OF_ENTRIES:
        return values | {part: entries | {path: parse_yaml(text, place=f"override '{override}'")}}
    if not isinstance(entries[entry], dict):
        raise ConfigError(f"override '{override}': space.{entry} has no keys. Give the whole entry instead.")
    return values | {part: entries | {entry: apply_overrides(entries[entry], [f"{below}={text}"])}}
