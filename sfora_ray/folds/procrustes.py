"""Every member turned onto one of them by orthogonal Procrustes, then averaged. Reflections are allowed."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from sfora_ray.card import Card
from sfora_ray.errors import ConfigError
from sfora_ray.folds.algebra import nearest_rotation
from sfora_ray.folds.base import InductiveFold
from sfora_ray.folds.fitted import FittedFold
from sfora_ray.folds.moments import Moments


class ProcrustesOptions(InductiveFold):
    """Mean of the members, each rotated onto a reference member."""

    card: ClassVar[Card] = Card(
        title="Procrustes to one member",
        paper="Schoenemann, Psychometrika 1966",
        checked="reference values",
    )

    name: Literal["procrustes"] = "procrustes"
    member: int = Field(default=0, ge=0)
    """The reference."""

    def fit(self, train: Moments) -> FittedFold:
        """Solve one ``(D, D)`` problem a member, on blocks of the Gram matrix."""
        if self.member >= train.num_members:
            raise ConfigError(
                f"folds.procrustes.member: the pack has members 0..{train.num_members - 1}, got "
                f"{self.member}. Name one of them."
            )
        rotations = [nearest_rotation(train.block(m, self.member)) for m in range(train.num_members)]
        return FittedFold.of(
            self.canonical_name,
            np.concatenate(rotations) / train.num_members,
            fitted_on="train",
            num_members=train.num_members,
            member_dim=train.dim,
        )
