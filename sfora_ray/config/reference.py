"""The configuration reference, generated from the types themselves so that it cannot disagree with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sfora_ray.config.pack import PackConfig
from sfora_ray.config.problems import TAGS, models_in
from sfora_ray.options import Options


def config_reference(root: type[BaseModel] = PackConfig) -> str:
    """Return every key with its type, default and meaning, as Markdown, one table a part; a pack within has its own.

    A part that may stand in several places, such as a recipe within distillation, has its table at the first of them.
    """
    first_places: dict[type[BaseModel], str] = {}
    for title, model in _parts("", root):
        first_places.setdefault(model, title)
    return "\n\n".join(_table(title, model) for model, title in first_places.items())


def _parts(place: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    yield place or "top level", model
    for key, field in model.model_fields.items():
        children = [child for child in models_in(field.annotation) if child is not PackConfig]
        for child in children:
            kind = next((child.model_fields[tag].default for tag in reversed(TAGS) if tag in child.model_fields), None)
            inner = f"{place}.{key}" if place else key
            title = f"{inner}: {kind}" if len(children) > 1 and kind is not None else inner
            yield from _parts(title, child)


def _table(title: str, model: type[BaseModel]) -> str:
    rows = [_row(key, field) for key, field in model.model_fields.items()]
    first_line = (model.__doc__ or "").strip().splitlines()[0]
    return "\n".join(
        [
            f"#### `{title}`",
            "",
            first_line,
            "",
            "| key | type | default | |",
            "| --- | --- | --- | --- |",
            *rows,
        ]
    )


def _row(key: str, field: FieldInfo) -> str:
    meaning = " ".join((field.description or "").split())
    default = "required" if field.is_required() else _default(field.get_default(call_default_factory=True))
    return f"| `{key}` | {_type(field)} | {default} | {meaning.replace('|', chr(92) + '|')} |"


def _default(value: Any) -> str:
    if isinstance(value, Options):
        return "see below"
    return "null" if value is None else f"`{value.as_posix() if isinstance(value, Path) else value}`"


def _type(field: FieldInfo) -> str:
    return "see below" if models_in(field.annotation) else f"`{_in_words(field.annotation)}`".replace("|", "\\|")


def _in_words(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _in_words(inner[0])
    if origin is Literal:
        return " | ".join(str(value) for value in inner)
    if origin in (Union, UnionType):
        return " | ".join(_in_words(part) for part in inner)
    if origin is tuple:
        return f"list of {_in_words(inner[0])}" if Ellipsis in inner else f"[{', '.join(_in_words(p) for p in inner)}]"
    return "null" if annotation is type(None) else str(getattr(annotation, "__name__", annotation)).lower()
