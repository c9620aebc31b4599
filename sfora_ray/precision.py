"""The least precision in which losses, distances and powers are computed, whatever autocast makes of a network."""

from __future__ import annotations

from torch import Tensor


def widened(rows: Tensor) -> Tensor:
    """Return floating-point values in float32, or as they are where they are at least that wide."""
    return rows.float() if rows.element_size() < 4 else rows
