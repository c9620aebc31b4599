"""From a name in a config to the options of the part it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Union

from pydantic import Field

from sfora_ray.options import Options


def one_of(table: Mapping[str, type[Options]], key: str = "name") -> Any:
    """Return the pydantic type "one of the options in this table", told apart by their field ``key``."""
    kinds = tuple(table.values())
    if len(kinds) == 1:
        return kinds[0]
    return Annotated[Union[kinds], Field(discriminator=key)]  # noqa: UP007 - the members are known at run time
