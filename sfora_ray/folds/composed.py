"""Folds one after another: ``gpa+wccn`` aligns the members, then normalises their consensus.

The second fold is fitted on the first's moments pushed through its matrix, so nothing needs the rows again,
and the result is one matrix. Rows are not normalised in between, for that would not be linear.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from sfora_ray.card import Card
from sfora_ray.errors import ConfigError
from sfora_ray.folds.base import InductiveFold
from sfora_ray.folds.fitted import FittedFold, FittedOn
from sfora_ray.folds.gpa import GpaOptions
from sfora_ray.folds.moments import Moments
from sfora_ray.folds.plain import ConcatOptions, MeanOptions, RandomOptions
from sfora_ray.folds.procrustes import ProcrustesOptions
from sfora_ray.folds.projections import PcaOptions, UncentredOptions
from sfora_ray.folds.wccn import WccnOptions

Step = Annotated[
    ConcatOptions
    | MeanOptions
    | RandomOptions
    | ProcrustesOptions
    | GpaOptions
    | PcaOptions
    | UncentredOptions
    | WccnOptions,
    Field(discriminator="name"),
]


class ComposedOptions(InductiveFold):
    """A chain of inductive folds."""

    card: ClassVar[Card] = Card(
        title="Folds in a row",
        paper="this project",
        checked="the two folds applied one after the other, row by row",
        differences="not applicable",
    )

    name: Literal["composed"] = "composed"
    chain: tuple[Step, ...] = Field(min_length=2)
    """The folds, first to last."""

    @property
    def canonical_name(self) -> str:
        """The steps' names, joined by ``+``."""
        return "+".join(step.canonical_name for step in self.chain)

    def fit(self, train: Moments) -> FittedFold:
        """Fit the steps one after another.

        Raises:
            ConfigError: a step needs rows.
        """
        if any(step.needs_rows for step in self.chain):
            raise ConfigError(
                f"folds.{self.canonical_name}: steps are fitted on moments, got a published procedure that "
                "needs rows. Use that fold alone."
            )
        fitted = self.chain[0].fit(train)
        for step in self.chain[1:]:
            fitted = _follow(fitted, step, train)
        return fitted


def _follow(first: FittedFold, step: Step, train: Moments) -> FittedFold:
    matrix = first.matrix.astype(np.float64)
    mean = None if first.mean is None else first.mean.astype(np.float64)
    second = step.fit(train.through(matrix, mean))
    fitted_on: FittedOn = "train" if "train" in (first.fitted_on, second.fitted_on) else "none"
    # A second fold's mean is that of the rows it saw: taking it off is centring the first rows.
    return FittedFold.of(
        f"{first.name}+{second.name}",
        matrix @ second.matrix.astype(np.float64),
        mean=mean if second.mean is None else train.mean,
        fitted_on=fitted_on,
        num_members=train.num_members,
        member_dim=train.dim,
    )
