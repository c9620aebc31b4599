"""Learning rates over epochs, and the warm-up in which the backbone rests."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfora_ray.config.pack import ScheduleOptions
from sfora_ray.parameters import ParameterGroup


def rate_factor(options: ScheduleOptions, epoch: int, epochs: int) -> float:
    """Return what the rates are multiplied by in ``epoch`` (counted from 1, warm-up epochs included)."""
    done = max(0, epoch - 1 - options.delay_epochs)
    if options.name == "step":
        return options.gamma ** (done // options.every_epochs)
    if options.name == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * done / (epochs - options.delay_epochs)))
    return 1.0


def apply_warmup(options: ScheduleOptions, groups: Sequence[ParameterGroup], epoch: int) -> None:
    """Let only the groups that warm up learn during the first epochs; then all.

    A resting parameter has no gradient at all, so the optimiser skips it: neither moments nor decay move.
    """
    resting = epoch <= options.warmup_epochs
    for group in groups:
        for parameter in group.parameters:
            parameter.requires_grad_(group.warms_up or not resting)
            if resting and not group.warms_up:
                parameter.grad = None
