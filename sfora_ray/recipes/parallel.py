"""One batch over several workers, with the very gradients of one worker.

Every worker embeds its own rows, gathers the rows of all, and computes the loss ``L`` of the whole batch.
The backward pass of the gather adds up what all ``W`` workers send to a row; as each computes the same ``L``,
a row receives ``W dL/drow``. Its worker turns this into ``W`` times that row's share of the gradient of the
embedder. The mean over workers is then the sum of all shares: exactly the gradient of one worker with all
rows. What the objective learns has the same gradient on every worker, and the mean leaves it alone.

BatchNorm with statistics of its own batch is the exception: in an embedder it sees its worker's rows only,
so freeze it or use synchronised layers. BatchNorm inside an objective sees gathered rows and needs neither.
An average of the embedder takes the first worker's statistics, so that it is one and the same on all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def gather_rows(rows: Tensor) -> Tensor:
    """Return the ``(W * B, ...)`` rows of all workers in rank order, ``rows`` itself without workers.

    Differentiable for embeddings; labels pass too. Every worker must bring the same number of rows.
    """
    if not _several_workers():
        return rows
    gathered: Tensor = _GatherRows.apply(rows)
    return gathered


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.num_rows = len(rows)
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        first = dist.get_rank() * ctx.num_rows
        return total[first : first + ctx.num_rows]


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its mean over the workers, in one message per precision.

    Parameters without a gradient, such as those that rest during warm-up, are skipped; they must be the same
    on every worker.
    """
    if not _several_workers():
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    for dtype in dict.fromkeys(gradient.dtype for gradient in gradients):
        _average([gradient for gradient in gradients if gradient.dtype == dtype])


def _average(gradients: list[Tensor]) -> None:
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    _scatter(flat, gradients)


def _scatter(flat: Tensor, tensors: list[Tensor]) -> None:
    parts = torch.split(flat, [tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.view_as(tensor))


def agree(number: int, device: torch.device) -> int:
    """Return the first worker's number on every worker."""
    if not _several_workers():
        return number
    box = torch.tensor([number], dtype=torch.int64, device=device)
    dist.broadcast(box, src=0)
    return int(box)


def from_first(rows: Tensor) -> Tensor:
    """Return the first worker's rows on every worker, so that none differs in the last bit."""
    if not _several_workers():
        return rows
    same = rows.contiguous()
    dist.broadcast(same, src=0)
    return same


@torch.no_grad()
def share_statistics(module: nn.Module) -> None:
    """Give every worker the first one's statistics of the layers that gather them; frozen layers do not."""
    if not _several_workers():
        return
    layers = [layer for layer in module.modules() if layer.training]
    buffers = [buffer for layer in layers for buffer in layer.buffers(recurse=False)]
    for dtype in dict.fromkeys(buffer.dtype for buffer in buffers):
        of_dtype = [buffer for buffer in buffers if buffer.dtype == dtype]
        flat = torch.cat([buffer.flatten() for buffer in of_dtype])
        dist.broadcast(flat, src=0)
        _scatter(flat, of_dtype)


def leave_group() -> None:
    """Close the connections to the other workers, so that they fail at once instead of waiting for this one."""
    if _several_workers():
        dist.destroy_process_group()


def _several_workers() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
