"""The table of methods, made from the tables that a configuration chooses from, so that both always agree."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import sfora_ray
from sfora_ray.card import Card
from sfora_ray.data import DATASETS
from sfora_ray.errors import InputError, did_you_mean
from sfora_ray.folds import FOLDS
from sfora_ray.losses import LOSSES
from sfora_ray.mining import MINERS
from sfora_ray.recipes import RECIPES
from sfora_ray.samplers import SAMPLERS

_TABLES: Mapping[str, Mapping[str, type]] = {
    "loss": LOSSES,
    "miner": MINERS,
    "recipe": RECIPES,
    "sampler": SAMPLERS,
    "data": DATASETS,
    "folds": FOLDS,
}


@dataclass(frozen=True)
class Method:
    """One method that a configuration can name.

    Attributes:
        key: the configuration key it stands under, e.g. ``loss``.
        name: what stands there.
        file: where it is, below the package.
        card: what is known of it.
    """

    key: str
    name: str
    file: str
    card: Card


def methods(only: str | None = None) -> tuple[Method, ...]:
    """Return every method of every table, in the order of the tables, or of ``only`` one table.

    Raises:
        InputError: there is no such table.
    """
    return tuple(
        Method(key, name, _file_of(options), options.card)  # type: ignore[attr-defined]
        for key in _chosen(only)
        for name, options in _TABLES[key].items()
    )


def methods_as_markdown(only: str | None = None) -> str:
    """Return the table of methods, one part a configuration key, or ``only`` one part.

    Raises:
        InputError: there is no such table.
    """
    return "\n\n".join(_part(key, methods(key)) for key in _chosen(only))


def _chosen(only: str | None) -> tuple[str, ...]:
    if only is None:
        return tuple(_TABLES)
    if only not in _TABLES:
        raise InputError(
            f"methods: no such table, got '{only}'.{did_you_mean(only, _TABLES)} Choose from {', '.join(_TABLES)}."
        )
    return (only,)


def _part(key: str, listed: tuple[Method, ...]) -> str:
    rows = [f"| {' | '.join(_cells(one))} |" for one in listed]
    head = "| name | method | paper | file | checked against | differs from the authors' program |"
    return "\n".join([f"#### `{key}`", "", head, "| --- | --- | --- | --- | --- | --- |", *rows])


def _cells(one: Method) -> tuple[str, ...]:
    card = one.card
    return (f"`{one.name}`", card.title, card.paper, f"`{one.file}`", card.checked, card.differences)


def _file_of(options: type) -> str:
    return Path(inspect.getfile(options)).relative_to(Path(sfora_ray.__file__).parent).as_posix()
