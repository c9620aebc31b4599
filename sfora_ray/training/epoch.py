"""One epoch of one member."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sfora_ray.errors import NonFiniteError
from sfora_ray.training.announcer import Announcer
from sfora_ray.training.informing import informed_sampler
from sfora_ray.training.optimizer import set_rates
from sfora_ray.training.parts import Parts
from sfora_ray.training.schedule import apply_warmup, rate_factor
from sfora_ray.training.step import take_step

# A look at the loss waits for the device; so it is taken every so many steps, over all of them.
GUARD_EVERY = 20


@dataclass(frozen=True)
class EpochSoFar:
    """An epoch under way: its losses, one entry a step, the seconds spent, and what its sampler was shown.

    Attributes:
        losses: ``(steps,)`` of each term, as computed.
        seconds: wall time of its steps.
        shown: ``(n, D)`` embeddings that the sampler asked for before the epoch, if it did.
    """

    losses: Mapping[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0
    shown: Tensor | None = None

    @property
    def steps(self) -> int:
        """Return how many steps are done."""
        return len(self.losses["total"]) if self.losses else 0


@dataclass(frozen=True)
class EpochOutcome:
    """What an epoch was: mean losses by term, the rates it used, its seconds and throughput."""

    loss: dict[str, float]
    lr: dict[str, float]
    seconds: float
    images_per_second: float


Between = Callable[[int, Callable[[], EpochSoFar]], None]
"""Called between two steps with the number of steps done and what tells the epoch so far."""


def go_on(done: int, so_far: Callable[[], EpochSoFar]) -> None:
    """Do nothing between two steps."""


def train_epoch(
    parts: Parts, epoch: int, announcer: Announcer, *, start: EpochSoFar = EpochSoFar(), between: Between = go_on
) -> EpochOutcome:
    """Train one epoch, counted from 1.

    Args:
        parts: the member.
        epoch: which epoch.
        announcer: told of every step.
        start: what was done of it before an interruption.
        between: called after every step but the last; it may save the state, or raise to stop.

    Raises:
        NonFiniteError: a loss is NaN or infinite; names the epoch and step.
    """
    config = parts.config
    apply_warmup(config.schedule, parts.groups, epoch)
    rates = set_rates(parts.optimizer, parts.groups, rate_factor(config.schedule, epoch, config.training.epochs))
    losses = _Losses(epoch, start)
    sampler, shown = informed_sampler(parts, epoch, start.shown)
    parts.recipe.train()
    clock = _Clock(start.seconds)
    steps = sampler.steps_per_epoch
    first = (epoch - 1) * steps
    for done, (images, labels) in enumerate(parts.batches(sampler, epoch, start.steps), start=start.steps + 1):
        terms = take_step(parts, images, labels, step=first + done - 1)
        losses.add({"total": terms.total, **terms.terms})
        num_images = done * config.sampler.batch_size
        announcer.step(epoch, done, steps, losses.newest, num_images / clock.seconds())
        if done < steps:
            between(done, lambda: EpochSoFar(losses.values(), clock.seconds(), shown))
    means = losses.means()
    seconds = clock.seconds()
    return EpochOutcome(means, rates, seconds, steps * config.sampler.batch_size / seconds)


class _Clock:
    """Seconds of an epoch, those before an interruption included."""

    def __init__(self, before: float) -> None:
        self._started = time.perf_counter() - before

    def seconds(self) -> float:
        return time.perf_counter() - self._started


class _Losses:
    """Losses of an epoch, left on the device until somebody must look."""

    def __init__(self, epoch: int, start: EpochSoFar) -> None:
        self._epoch = epoch
        self._kept: dict[str, list[Tensor]] = {name: list(values) for name, values in start.losses.items()}
        self._looked_at = start.steps
        self.newest: float | None = None

    def add(self, terms: dict[str, Tensor]) -> None:
        """Keep the terms of one step; look at them from time to time."""
        for name, value in terms.items():
            self._kept.setdefault(name, []).append(value.detach())
        if len(self._kept["total"]) - self._looked_at >= GUARD_EVERY or self.newest is None:
            self._look()

    def values(self) -> dict[str, Tensor]:
        """Return each term of all steps, proved finite."""
        self._look()
        return {name: torch.stack(values) for name, values in self._kept.items()}

    def means(self) -> dict[str, float]:
        """Return the mean of each term over the epoch."""
        return {name: float(values.double().mean()) for name, values in self.values().items()}

    def _look(self) -> None:
        new = self._kept["total"][self._looked_at :]
        if not new:
            return
        total = torch.stack(new).cpu()
        bad = (~torch.isfinite(total)).nonzero()
        if len(bad):
            step = self._looked_at + int(bad[0]) + 1
            raise NonFiniteError(
                f"epoch {self._epoch}, step {step}: the loss is {float(total[int(bad[0])])}. "
                "Lower the learning rates, clip gradients, or use precision fp32 or bf16."
            )
        self._looked_at += len(total)
        self.newest = float(total[-1])
