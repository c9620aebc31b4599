"""True and False where a number belongs, which the types alone would take for 1 and 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def truths_for_numbers(given: Any, made: Any, place: str = "") -> list[str]:
    """Return a line for each truth value that has become a number.

    Args:
        given: plain values as somebody wrote them.
        made: what the types have made of them, as plain values.
        place: where they stand.
    """
    if isinstance(given, Mapping) and isinstance(made, Mapping):
        pairs = [(f"{place}.{key}" if place else str(key), given[key], made[key]) for key in given if key in made]
    elif isinstance(given, list | tuple) and isinstance(made, list):
        pairs = [(f"{place}[{at}]", *both) for at, both in enumerate(zip(given, made, strict=False))]
    else:
        number = isinstance(made, int | float) and not isinstance(made, bool)
        return [f"{place}: expected a number, got {given} (bool)"] if isinstance(given, bool) and number else []
    return [line for within, one, other in pairs for line in truths_for_numbers(one, other, within)]
