"""One optimiser step, in the published order."""

from __future__ import annotations

import torch
from torch import Tensor

from sfora_ray.randomness import derive_seed
from sfora_ray.recipes.base import LossTerms
from sfora_ray.recipes.parallel import average_gradients
from sfora_ray.training.optimizer import clip_gradients
from sfora_ray.training.parts import Parts


def take_step(parts: Parts, images: Tensor, labels: Tensor, *, step: int) -> LossTerms:
    """Forward, backward, clip and update, once for each turn of the recipe; then let the teacher follow.

    Args:
        parts: the member.
        images: ``(B, C, H, W)`` normalised, this worker's share of the batch.
        labels: ``(B,)`` of these images.
        step: optimiser steps done before this one; it names the stream of any dropout.
    """
    torch.manual_seed(derive_seed(parts.spec.seed, "step", step, parts.worker.rank))
    totals: list[Tensor] = []
    terms: dict[str, Tensor] = {}
    for turn in parts.recipe.turns(images, labels):
        _update(parts, turn.terms.total)
        totals.append(turn.terms.total.detach())
        terms |= turn.terms.terms
    parts.recipe.after_step()
    return LossTerms(torch.stack(totals).sum(), terms)


def _update(parts: Parts, loss: Tensor) -> None:
    """Change the parameters that have a gradient; the optimiser leaves all others as they are."""
    parts.optimizer.zero_grad(set_to_none=True)
    parts.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
    if parts.worker.world_size > 1:
        average_gradients(parts.recipe.parameters())
    parts.scaler.unscale_(parts.optimizer)
    clip_gradients(parts.config.optimizer, parts.groups)
    parts.scaler.step(parts.optimizer)
    parts.scaler.update()
