"""MLflow's limits on one request and on one value, kept without losing anything silently."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

MAX_METRICS = 1000
MAX_PARAMS = 100
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 8000

T = TypeVar("T")


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield ``items`` in order, at most ``size`` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def shortened(values: Mapping[str, str], limit: int) -> dict[str, str]:
    """Return the values; one longer than ``limit`` gives way to its digest, under its name and ``.sha256``.

    MLflow would cut it, and two values that differ only in their tails would look equal.
    """
    return dict(_entry(name, value, limit) for name, value in values.items())


def _entry(name: str, value: str, limit: int) -> tuple[str, str]:
    if len(value) <= limit:
        return name, value
    return f"{name}.sha256", hashlib.sha256(value.encode("utf-8")).hexdigest()
