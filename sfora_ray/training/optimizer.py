"""The optimiser over named parameter groups."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.optim import Adam, AdamW, Optimizer

from sfora_ray.config.pack import OptimizerOptions
from sfora_ray.parameters import ParameterGroup


def build_optimizer(options: OptimizerOptions, groups: Sequence[ParameterGroup], device: torch.device) -> Optimizer:
    """Return the optimiser with one torch group per parameter group, each with its rate and decay."""
    kind: type[Adam] = {"adamw": AdamW, "adam": Adam}[options.name]
    settings = [
        {
            "params": list(group.parameters),
            "name": group.name,
            "lr": group.lr,
            "weight_decay": options.weight_decay if group.decays else 0.0,
        }
        for group in groups
    ]
    return kind(settings, lr=options.lr, eps=options.epsilon, fused=device.type == "cuda")


def set_rates(optimizer: Optimizer, groups: Sequence[ParameterGroup], factor: float) -> dict[str, float]:
    """Set each group's rate to its own times the schedule's factor; return the rates by group name."""
    for torch_group, group in zip(optimizer.param_groups, groups, strict=True):
        torch_group["lr"] = group.lr * factor
    return {group.name: group.lr * factor for group in groups}


def clip_gradients(options: OptimizerOptions, groups: Sequence[ParameterGroup]) -> None:
    """Clip gradients by value, by the norm of all together, or not at all, as configured."""
    parameters = [parameter for group in groups for parameter in group.parameters]
    if options.clip_value is not None:
        torch.nn.utils.clip_grad_value_(parameters, options.clip_value)
    if options.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(parameters, options.clip_norm)
