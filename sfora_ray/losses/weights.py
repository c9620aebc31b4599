"""What objectives with proxies or class weights share: how these start, and how they reach the optimiser."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sfora_ray.parameters import ParameterGroup


@torch.no_grad()
def draw_normal(weights: Tensor, *, std: float, generator: torch.Generator) -> None:
    """Fill class weights in place with normal values; the library would use the global generator."""
    weights.normal_(std=std, generator=generator)


def weight_group(name: str, weights: nn.Parameter, lr: float, *, decays: bool) -> tuple[ParameterGroup, ...]:
    """Return an objective's only parameter as a group at its own absolute rate."""
    return (ParameterGroup(name, (weights,), lr, decays=decays, warms_up=True),)
