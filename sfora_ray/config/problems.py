"""Pydantic's complaints in the words of the person who wrote the YAML."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sfora_ray.errors import did_you_mean
from sfora_ray.storage import without_credentials

Models = list[type[BaseModel]]

TAGS = ("name", "kind", "distribution")
"""Keys by which the members of a union are told apart."""

_EXPECTED = {
    "int_parsing": "int",
    "int_type": "int",
    "int_from_float": "int",
    "float_parsing": "float",
    "float_type": "float",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "finite_number": "a finite number",
}


def describe(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Return one line per problem: its place, what is wrong with what was given, and what would be right."""
    return list(dict.fromkeys(_line(detail, model) for detail in error.errors(include_url=False)))


def _line(detail: ErrorDetails, model: type[BaseModel]) -> str:
    owner, within, place = _walk(detail["loc"], model)
    given = detail["input"]
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        keys = sorted({key for one in owner for key in one.model_fields})
        name = str(detail["loc"][-1])
        return f"{place}: unknown key.{did_you_mean(name, keys)} Valid keys: {', '.join(keys)}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        names = list(dict.fromkeys(name for one in within for name in _names_of(one)))
        name = str(context.get("tag", ""))
        key = context.get("discriminator", "'name'")
        wrong = f"'{name}' is not known" if name else f"needs a {key}"
        choice = f" Choose one of: {', '.join(names)}" if names else ""
        return f"{place}: {wrong}.{did_you_mean(name, names)}{choice}"
    if kind == "missing":
        return f"{place}: must be given"
    if kind == "literal_error":
        expected = str(context.get("expected", ""))
        names = expected.replace("'", "").replace(" or ", ", ").split(", ")
        return f"{place}: {given!r} is not one of {expected}.{did_you_mean(str(given), names)}"
    if kind in _EXPECTED:
        return f"{place}: expected {_EXPECTED[kind]}, got {_short(given)}"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{place}: {message[0].lower()}{message[1:]}, got {_short(given)}" if place else message


def _short(given: Any) -> str:
    text = without_credentials(repr(given))
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(given).__name__})"


def _walk(location: Iterable[int | str], model: type[BaseModel]) -> tuple[Models, Models, str]:
    """Follow a location through the models; leave out the tags by which pydantic tells union members apart.

    Returns the models that own the last part, those that may stand below it, and the place in words.
    """
    models: Models = [model]
    owner, place = models, ""
    for part in location:
        if isinstance(part, int):
            place += f"[{part}]"
            continue
        tagged = [one for one in models if part in _names_of(one)]
        field = next((one.model_fields[part] for one in models if part in one.model_fields), None)
        # Among several the tag comes first, even where one of them has a field of the same name.
        if tagged and (field is None or len(models) > 1):
            models = owner = tagged
            continue
        if field is None and _is_internal(part):
            continue
        place += f".{part}" if place else part
        owner = models
        models = models_in(field.annotation) if field is not None else owner
    return owner, models, place


def _is_internal(part: str) -> bool:
    return "[" in part or part.startswith("function-") or part in ("str", "int", "float", "bool", "none")


def _names_of(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names (kinds, distributions) by which a union knows this model."""
    field = next((model.model_fields[key] for key in TAGS if key in model.model_fields), None)
    return get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a field's annotation may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, tuple, list) or get_origin(annotation) is not None:
        return [model for part in get_args(annotation) for model in models_in(part)]
    return []
