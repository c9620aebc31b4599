"""When two configurations are the same one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def identity_of(value: Any) -> str:
    """Return a text that two JSON values share exactly if they say the same; ``1`` and ``1.0`` do, ``true`` does not.

    Raises:
        ValueError: it is no JSON value: a date, NaN, or a mapping whose keys are not texts.
    """
    return json.dumps(_canonical(value), sort_keys=True, allow_nan=False)


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("a mapping has keys that are not texts")
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"{value!r} is not a plain value")
