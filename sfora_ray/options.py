"""The one base of everything that can be configured, and the choice of one part among those of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    """Frozen, typed options: unknown keys, NaN and infinities are refused.

    A component's options carry a ``name`` (its key in the room's table) and a ``build`` method that makes
    the component; a new component is a new subclass and one line in that table.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def one_of(table: Mapping[str, type[Options]], key: str = "name") -> Any:
    """Return the pydantic type "one of the options in this table", told apart by their field ``key``."""
    kinds = tuple(table.values())
    if len(kinds) == 1:
        return kinds[0]
    return Annotated[Union[kinds], Field(discriminator=key)]  # noqa: UP007 - the members are known at run time
