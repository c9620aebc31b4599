"""One epoch of one member."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from sfora_ray.errors import NonFiniteError
from sfora_ray.training.announcer import Announcer
from sfora_ray.training.optimizer import set_rates
from sfora_ray.training.parts import Parts
from sfora_ray.training.schedule import apply_warmup, rate_factor
from sfora_ray.training.step import take_step

# A look at the loss waits for the device; so it is taken every so many steps, over all of them.
_GUARD_EVERY = 20


@dataclass(frozen=True)
class EpochOutcome:
    """What an epoch was: mean losses by term, the rates it used, its seconds and throughput."""

    loss: dict[str, float]
    lr: dict[str, float]
    seconds: float
    images_per_second: float


def train_epoch(parts: Parts, epoch: int, announcer: Announcer) -> EpochOutcome:
    """Train one epoch, counted from 1.

    Raises:
        NonFiniteError: a loss is NaN or infinite; names the epoch and step.
    """
    config = parts.config
    apply_warmup(config.schedule, parts.groups, epoch)
    rates = set_rates(parts.optimizer, parts.groups, rate_factor(config.schedule, epoch, config.training.epochs))
    parts.recipe.train()
    steps = parts.sampler.steps_per_epoch
    first = (epoch - 1) * steps
    losses = _Losses(epoch)
    started, num_images = time.perf_counter(), 0
    for step, (images, labels) in enumerate(parts.batches(epoch)):
        terms = take_step(parts, images, labels, step=first + step)
        losses.add({"total": terms.total, **terms.terms})
        num_images += len(labels) * parts.worker.world_size
        announcer.step(epoch, step + 1, steps, losses.newest, num_images / (time.perf_counter() - started))
    means = losses.means()
    seconds = time.perf_counter() - started
    return EpochOutcome(means, rates, seconds, num_images / seconds)


class _Losses:
    """Losses of an epoch, left on the device until somebody must look."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._kept: dict[str, list[Tensor]] = {}
        self._looked_at = 0
        self.newest: float | None = None

    def add(self, terms: dict[str, Tensor]) -> None:
        """Keep the terms of one step; look at them from time to time."""
        for name, value in terms.items():
            self._kept.setdefault(name, []).append(value.detach())
        if len(self._kept["total"]) - self._looked_at >= _GUARD_EVERY or self.newest is None:
            self._look()

    def means(self) -> dict[str, float]:
        """Return the mean of each term over the epoch."""
        self._look()
        return {name: float(torch.stack(values).double().mean()) for name, values in self._kept.items()}

    def _look(self) -> None:
        total = torch.stack(self._kept["total"][self._looked_at :]).cpu()
        bad = (~torch.isfinite(total)).nonzero()
        if len(bad):
            step = self._looked_at + int(bad[0]) + 1
            raise NonFiniteError(
                f"epoch {self._epoch}, step {step}: the loss is {float(total[int(bad[0])])}. "
                "Lower the learning rates, clip gradients, or use precision fp32 or bf16."
            )
        self._looked_at += len(total)
        self.newest = float(total[-1])
