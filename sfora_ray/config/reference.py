"""The configuration reference, generated from the types themselves so that it cannot disagree with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sfora_ray.config.pack import PackConfig
from sfora_ray.config.problems import TAGS, models_in

_Places = Mapping[type[BaseModel], str]


def config_reference(root: type[BaseModel] = PackConfig) -> str:
    """Return every key with its type, default and meaning, as Markdown, one table a part; a pack within has its own.

    A part that may stand in several places, such as a recipe within distillation, has its table at the shallowest of
    them, for there a reader looks; the others lead to it.
    """
    parts = list(_parts("", root))
    places: dict[type[BaseModel], str] = {}
    for place, model in sorted(parts, key=lambda part: part[0].count(".")):
        places.setdefault(model, place)
    return "\n\n".join(_table(place, model, places) for place, model in parts if places[model] == place)


def _parts(place: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    yield place, model
    for key, field in model.model_fields.items():
        children = [child for child in models_in(field.annotation) if child is not PackConfig]
        for child in children:
            tag = _tag(child) if len(children) > 1 else None
            inner = _below(place, key)
            yield from _parts(f"{inner}: {child.model_fields[tag].default}" if tag else inner, child)


def _below(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _tag(model: type[BaseModel]) -> str | None:
    return next((tag for tag in reversed(TAGS) if tag in model.model_fields), None)


def _table(place: str, model: type[BaseModel], places: _Places) -> str:
    rows = [_row(_below(place, key), key, field, places) for key, field in model.model_fields.items()]
    first_line = (model.__doc__ or "").strip().splitlines()[0]
    return "\n".join(
        [
            f"#### `{place or 'top level'}`",
            "",
            first_line,
            "",
            "| key | type | default | |",
            "| --- | --- | --- | --- |",
            *rows,
        ]
    )


def _row(place: str, key: str, field: FieldInfo, places: _Places) -> str:
    cells = (_type(place, field, places), _default(field), " ".join((field.description or "").split()))
    return f"| `{key}` | {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        tag = _tag(type(value)) if len(models_in(field.annotation)) > 1 else None
        return f"`{getattr(value, tag)}`" if tag else "its defaults"
    return "null" if value is None else f"`{value.as_posix() if isinstance(value, Path) else value}`"


def _type(place: str, field: FieldInfo, places: _Places) -> str:
    children = models_in(field.annotation)
    if PackConfig in children:
        return "see `sfora-ray config reference`"
    if len(children) == 1:
        return f"see `{places[children[0]]}`"
    tables = dict.fromkeys(places[child].rpartition(": ")[0] for child in children)
    elsewhere = ", ".join(f"`{table}`" for table in tables if table != place)
    return f"`{_in_words(field.annotation)}`" + (f", see {elsewhere}" if elsewhere else "")


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
    if origin is dict:
        return f"mapping to {_in_words(inner[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and (tag := _tag(annotation)):
        return _in_words(annotation.model_fields[tag].annotation)
    return "null" if annotation is type(None) else str(getattr(annotation, "__name__", annotation)).lower()
