"""Pydantic's complaints in the words of the person who wrote the YAML."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Mapping
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
    "dict_type": "keys and values",
    "finite_number": "a finite number",
}
_NO_PART = ("model_type", "model_attributes_type", "dataclass_type")


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
        return f"{place}: {shortened(given)} is not one of {expected}.{did_you_mean(str(given), names)}"
    if kind in _NO_PART:
        return f"{place}: {_no_part(given, within)}"
    if kind in _EXPECTED:
        return f"{place}: expected {_EXPECTED[kind]}, got {_typed(given)}"
    message = detail["msg"].removeprefix("Value error, ")
    if not place:
        return message
    # A mapping is a whole part as it was given: its validator names the values that matter.
    tells_what_was_given = isinstance(given, Mapping) or re.search(r"\bgot\b", message)
    got = "" if tells_what_was_given else f", got {_typed(given)}"
    return f"{place}: {message[0].lower()}{message[1:]}{got}"


def _no_part(given: Any, models: Models) -> str:
    """Return what is wrong with a value that stands where one of the models should, and what to write."""
    alone = f"keys {', '.join(sorted(models[0].model_fields))}" if len(models) == 1 else ""
    problem = f"expected {alone or 'a part with its options'}, got {_typed(given)}"
    named = [one for one in models if isinstance(given, str) and given in _names_of(one)]
    if named:
        needed = [f"{key}: ..." for key, field in named[0].model_fields.items() if field.is_required()]
        return f"{problem}. Write {{{', '.join([f'{_tag_of(named[0])}: {given}', *needed])}}}"
    if alone:
        return problem
    names = list(dict.fromkeys(name for one in models for name in _names_of(one)))
    choice = f"Write {{{_tag_of(models[0])}: ...}} with one of: {', '.join(names)}"
    return f"{problem}.{did_you_mean(str(given), names)} {choice}"


def shortened(given: Any) -> str:
    """Return a value as Python writes it, without credentials and cut to what a message can hold."""
    text = without_credentials(repr(given))
    return text if len(text) <= 60 else text[:57] + "..."


def _typed(given: Any) -> str:
    return f"{shortened(given)} ({type(given).__name__})"


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
    tag = _tag_of(model)
    annotation = model.model_fields[tag].annotation if tag else None
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _tag_of(model: type[BaseModel]) -> str:
    """Return the key by which a union knows this model, or an empty string."""
    return next((key for key in TAGS if key in model.model_fields), "")


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a field's annotation may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, tuple, list) or get_origin(annotation) is not None:
        return [model for part in get_args(annotation) for model in models_in(part)]
    return []
