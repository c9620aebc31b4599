"""Euclidean distances of rows: exactly 0 between equal ones, and with a gradient that costs what they do.

Torch's matrix product puts equal rows at a distance of rounding noise, which a mean over all that is not zero would
count; its exact form keeps the difference of every pair on its way back, which a memory of some thousand rows does
not leave room for on a device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def euclidean(rows: Tensor, others: Tensor) -> Tensor:
    """Return the ``(B, R)`` distances of ``(B, D)`` from ``(R, D)``; the gradient at a distance of 0 is 0."""
    distances: Tensor = _Euclidean.apply(rows, others)
    return distances


class _Euclidean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, others: Tensor) -> Tensor:
        distances = torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist")
        ctx.save_for_backward(rows, others, distances)
        return distances

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        rows, others, distances = ctx.saved_tensors
        pull = torch.where(distances > 0, gradient / distances, 0)  # (B, R); a row moves by pull * (row - other)
        of_rows, of_others = ctx.needs_input_grad
        return (
            pull.sum(1, keepdim=True) * rows - pull @ others if of_rows else None,
            pull.sum(0)[:, None] * others - pull.T @ rows if of_others else None,
        )
