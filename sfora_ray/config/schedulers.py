"""When a sweep stops a trial before its last epoch."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt

from sfora_ray.options import Options


class NoScheduler(Options):
    """Every trial is trained to its last epoch."""

    name: Literal["none"] = "none"


class AshaOptions(Options):
    """Asynchronous successive halving: at each rung only the best share goes on.

    Li et al.: A System for Massively Parallel Hyperparameter Tuning, MLSys 2020.
    """

    name: Literal["asha"] = "asha"
    grace_epochs: PositiveInt = 1
    """No trial is stopped before this epoch; the first rung. A multiple of the pack's `training.evaluate_every`."""
    reduction: int = Field(default=3, ge=2)
    """One of so many trials goes on at a rung; the next rung is so many times as far."""


class HyperbandOptions(Options):
    """Successive halving with several first rungs at once, for where it is not known how early a score tells.

    Li et al.: Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization, JMLR 2018; run asynchronously.
    """

    name: Literal["hyperband"] = "hyperband"
    grace_epochs: PositiveInt = 1
    """First rung of the first bracket. A multiple of the pack's `training.evaluate_every`."""
    reduction: int = Field(default=3, ge=2)
    """One of so many trials goes on at a rung; the first rung of the next bracket is so many times as far."""
    brackets: PositiveInt = 3


class PbtOptions(Options):
    """Population-based training: the worst go on from copies of the best, with values that are changed in training.

    Jaderberg et al.: Population Based Training of Neural Networks, 2017. What it finds is a schedule of values, not one
    configuration; all trials of the population should fit at once.
    """

    name: Literal["pbt"] = "pbt"
    interval_epochs: PositiveInt = 1
    """How often trials are compared and values changed. A multiple of the pack's `training.evaluate_every`."""
    quantile: float = Field(default=0.25, gt=0, le=0.5)
    """Share of the trials that is replaced by copies of as large a share of the best."""
    resample: float = Field(default=0.25, ge=0, le=1)
    """Chance that a value is drawn anew; else it is multiplied by one of the factors."""
    factors: tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]] = (0.8, 1.2)
    seed: int = Field(default=0, ge=0, lt=2**63)

    smallest_population: ClassVar[int] = 4


SCHEDULERS: dict[str, type[Options]] = {
    "none": NoScheduler,
    "asha": AshaOptions,
    "hyperband": HyperbandOptions,
    "pbt": PbtOptions,
}
