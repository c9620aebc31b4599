"""The one base of everything that can be configured."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Frozen, typed options: unknown keys, NaN and infinities are refused.

    A component's options carry a ``name`` (its key in the room's table) and a ``build`` method that makes
    the component; a new component is a new subclass and one line in that table.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
