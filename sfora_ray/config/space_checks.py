"""Whether a space can be searched: its paths, its order, its conditions, and what the pack says to its values.

Values are tried on the pack's own types: each end and each choice, within configurations of the space drawn around it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import ValidationError

from sfora_ray.config.pack import PackConfig
from sfora_ray.config.problems import describe
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.errors import ConfigError, did_you_mean
from sfora_ray.randomness import numpy_generator
from sfora_ray.search import MISSING, Distribution, Space, identity_of, root_of, value_below

_NO_RESULT = "it changes no result"
NOT_SEARCHED = {
    "name": "it only names folders",
    "seeds": "a configuration is judged by its mean over the sweep's own seeds",
    "min_members": _NO_RESULT,
    "data": "trials would be scored on different images",
    "input.cache_gigabytes": _NO_RESULT,
    "input.max_unreadable": _NO_RESULT,
    "input.unreadable": _NO_RESULT,
    "training.evaluate_every": "trials must be scored after the same epochs",
    "training.checkpoint_every": _NO_RESULT,
    "training.checkpoint_steps": _NO_RESULT,
    "training.progress_seconds": _NO_RESULT,
    "training.loader_workers": _NO_RESULT,
    "selection": "the sweep's own selection says what trials are judged by",
    "evaluation": "trials would be scored by different rules",
    "folds": "folds are fitted to a trained pack (sfora-ray fold)",
    "resources": "it says what a member is given, not what it learns",
    "tracking": _NO_RESULT,
    "output": _NO_RESULT,
    "cache_dir": _NO_RESULT,
}
"""Paths in a pack that may not be searched, and why."""

_DRAWS, _MOST_TRIES = 6, 400


def problems_of_space(sweep: SweepConfig, unseen: Collection[str] = ()) -> list[str]:
    """Return one line per problem; ``unseen`` are entries that were left out, since they are faulty themselves."""
    return [
        *_paths(sweep.search_space),
        *_order(sweep.search_space),
        *_conditions(sweep.search_space, unseen),
        *_values(sweep),
    ]


def _paths(space: Space) -> Iterator[str]:
    for path in space.entries:
        refused = root_of(path, NOT_SEARCHED)
        if refused is not None:
            yield f"space.{path}: may not be searched, for {NOT_SEARCHED[refused]}"
        for inner in NOT_SEARCHED:
            if inner.startswith(f"{path}."):
                yield f"space.{path}: may not be searched as a whole, for it holds {inner}. Search what is below it"
                break


def _order(space: Space) -> Iterator[str]:
    paths = list(space.entries)
    for place, path in enumerate(paths):
        inner = next((earlier for earlier in paths[:place] if earlier.startswith(f"{path}.")), None)
        if inner is not None:
            yield f"space.{path}: would overwrite {inner}, which stands before it. Put {path} first"


def _conditions(space: Space, unseen: Collection[str]) -> Iterator[str]:
    for path, one in space.entries.items():
        for looked_at, allowed in one.when.items():
            fault = _fault_of_condition(space, path, looked_at, allowed, unseen)
            if fault:
                yield f"space.{path}.when.{looked_at}: {fault}"


def _fault_of_condition(
    space: Space, path: str, looked_at: str, allowed: tuple[Any, ...], unseen: Collection[str]
) -> str:
    paths = list(space.entries)
    earlier = paths[: paths.index(path)]
    root = root_of(looked_at, dict.fromkeys(earlier))
    if root is not None:
        return _fault_of_values(space.entries[root], looked_at, looked_at[len(root) + 1 :], allowed)
    if root_of(looked_at, dict.fromkeys(unseen)) is not None:
        return ""
    if root_of(looked_at, space.entries) is not None:
        return f"must stand before {path} in the space, for conditions look at earlier entries"
    return (
        f"is no earlier entry of the space.{did_you_mean(looked_at, earlier)} Earlier: {', '.join(earlier) or 'none'}"
    )


def _fault_of_values(entry: Distribution, looked_at: str, below: str, allowed: tuple[Any, ...]) -> str:
    values = entry.all_values()
    if values is None:
        return f"is continuous ({entry.distribution}), so that no single value can be waited for"
    found = [value for one in values if (value := value_below(one, below)) is not MISSING]
    if not found:
        return f"none of the choices has a key '{below}'"
    known = {identity_of(value) for value in found}
    never = [value for value in allowed if identity_of(value) not in known]
    if not never:
        return ""
    texts = list(dict.fromkeys(str(value) for value in found))
    shown = ", ".join(texts[:10]) + (", ..." if len(texts) > 10 else "")
    return f"{looked_at} never is {never[0]!r}.{did_you_mean(str(never[0]), texts)} It may be: {shown}"


def _values(sweep: SweepConfig) -> list[str]:
    """Return what the pack says to the ends and choices of each entry that may be searched."""
    placed: list[str] = []
    others: list[str] = []
    space = Space({path: one for path, one in sweep.space.items() if root_of(path, NOT_SEARCHED) is None})
    for path, one in space.entries.items():
        for key, value in one.probes():
            for values in _configurations_with(space, path, value):
                for line in _pack_problems(sweep, values):
                    own = _placed(line, path, key, values)
                    placed += [own] if own else []
                    others += [] if own else [f"space: {line} (for instance with {_shown(values)})"]
    return list(dict.fromkeys(placed)) or others[:1]


def _configurations_with(space: Space, path: str, value: Any) -> Iterator[dict[str, Any]]:
    """Yield a few configurations in which the entry has this value; the same ones each time."""
    drawn = (_draw(space, number, path, value) for number in range(_MOST_TRIES))
    return islice((values for values in drawn if path in values), _DRAWS)


def _draw(space: Space, number: int, path: str, value: Any) -> dict[str, Any]:
    generator = numpy_generator(number, "probe", path)
    return space.decide(lambda entry, one: value if entry == path else one.at(float(generator.random())))


def _pack_problems(sweep: SweepConfig, values: Mapping[str, Any]) -> list[str]:
    try:
        sweep.candidate(values)
    except ValidationError as error:
        return describe(error, PackConfig)
    except ConfigError as error:
        return [str(error)]
    return []


def _placed(line: str, path: str, key: str, values: Mapping[str, Any]) -> str:
    """Return the pack's complaint at its place in the space; empty if it is not about this entry alone."""
    place, _, told = line.partition(": ")
    if place == f"space.{path}":
        return line
    if told.startswith("unknown key") and f"{path}.".startswith(f"{place}."):
        return f"space.{path}: {told if place == path else line}{_hint(path, values)}"
    # The complaint may be about another entry that lies within this one.
    if root_of(place.replace("[", "."), values) == path:
        return f"space.{path}.{key}{place[len(path) :]}: {told}"
    return ""


def _hint(path: str, values: Mapping[str, Any]) -> str:
    """Return, for a key that the choice of an earlier entry may lack, what to do about it."""
    around = root_of(path.rpartition(".")[0], values)
    return "" if around is None else f". So it is where {around} is {values[around]}: give it a when"


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{path}={value}" for path, value in values.items())
