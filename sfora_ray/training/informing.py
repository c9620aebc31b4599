"""Showing a sampler what the network makes of the images it asks about, before an epoch."""

from __future__ import annotations

import torch
from torch import Tensor

from sfora_ray.recipes.parallel import from_first
from sfora_ray.samplers import Sampler
from sfora_ray.training.evaluate import embed_table
from sfora_ray.training.parts import Parts


def informed_sampler(parts: Parts, epoch: int, shown: Tensor | None) -> tuple[Sampler, Tensor | None]:
    """Return the sampler of an epoch and the ``(n, D)`` embeddings it was shown, None where it asks for none.

    Args:
        parts: the member.
        epoch: counted from 1.
        shown: what it was shown before an interruption within this epoch; the network has moved on since then.
    """
    rows = parts.sampler.wants(epoch)
    if not len(rows):
        return parts.sampler, None
    if shown is None:
        table = embed_table(parts, parts.data.train.rows(rows), parts.data.on_unreadable)
        # Collectives of a GPU's backend want their tensors there.
        shown = from_first(torch.from_numpy(table.embeddings).to(parts.worker.device)).cpu()
    return parts.sampler.informed(epoch, shown.numpy()), shown
