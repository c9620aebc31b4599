"""Folds as text: ``uncentred:256``, ``gpa+wccn:64``, ``wccn:64,shrinkage=10``; and back to canonical names.

After a fold's name come its options: a bare number is its width, others are ``key=value``. ``+`` chains.
The canonical name is also a file name and is understood as well: ``uncentred-256``.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from sfora_ray.errors import ConfigError, did_you_mean
from sfora_ray.folds.composed import ComposedOptions
from sfora_ray.folds.gpa import GpaOptions, GpaTransductiveOptions
from sfora_ray.folds.plain import ConcatOptions, MeanOptions, RandomOptions
from sfora_ray.folds.procrustes import ProcrustesOptions
from sfora_ray.folds.projections import PcaOptions, PcaTransductiveOptions, UncentredOptions
from sfora_ray.folds.wccn import WccnOptions

OPTION = re.compile(r"[:,]|-(?=\d+(?:-|$)|[a-z_]+=)")

FoldUnion = (
    ConcatOptions
    | MeanOptions
    | ProcrustesOptions
    | GpaOptions
    | GpaTransductiveOptions
    | PcaOptions
    | PcaTransductiveOptions
    | UncentredOptions
    | WccnOptions
    | RandomOptions
    | ComposedOptions
)
NAMES = tuple(kind.model_fields["name"].default for kind in get_args(FoldUnion)[:-1])


def _from_text(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    steps = [_step(part.strip(), value) for part in value.split("+")]
    return steps[0] if len(steps) == 1 else {"name": "composed", "chain": steps}


def _step(text: str, whole: str) -> dict[str, Any]:
    name, *options = OPTION.split(text)
    step: dict[str, Any] = {"name": name}
    for option in options:
        key, equals, value = option.partition("=")
        key, value = (key, value) if equals else ("dim", key)
        if not value or key in step:
            raise ValueError(f"an option must be a width or key=value, each once, got '{option}' in '{whole}'")
        step[key] = value
    return step


AnyFold = Annotated[
    Annotated[FoldUnion, Field(discriminator="name")],
    BeforeValidator(_from_text, json_schema_input_type=str | FoldUnion),
]
"""A field type that takes a fold as text or as a mapping."""

_ADAPTER: TypeAdapter[FoldUnion] = TypeAdapter(AnyFold)


def parse_fold(text: str) -> FoldUnion:
    """Return the options that a text names.

    Raises:
        ConfigError: no such fold, or an option that it does not have.
    """
    try:
        return _ADAPTER.validate_python(text)
    except ValidationError as error:
        parts = [OPTION.split(part.strip())[0] for part in text.split("+")]
        hints = [did_you_mean(part, NAMES) for part in parts if part not in NAMES]
        problem = "; ".join(issue["msg"] for issue in error.errors())
        raise ConfigError(
            f"fold: not a fold ({problem}), got '{text}'.{''.join(hints)} "
            f"Write one of {', '.join(NAMES)}, with :WIDTH where it has one, joined by + to chain."
        ) from error
