"""Folds that learn nothing: the concatenation, the mean, a random projection of the concatenation."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from sfora_ray.card import Card
from sfora_ray.folds.base import InductiveFold
from sfora_ray.folds.fitted import FittedFold
from sfora_ray.folds.moments import Moments
from sfora_ray.randomness import numpy_generator


class ConcatOptions(InductiveFold):
    """All members side by side: cosine is the mean of the members' cosines. The pack at its full width."""

    card: ClassVar[Card] = Card(
        title="Concatenation",
        paper="SFORA, section 3",
        checked="the mean of the members' cosines; reference values",
    )

    name: Literal["concat"] = "concat"

    def fit(self, train: Moments) -> FittedFold:
        """Return the identity; only the shape of ``train`` is read."""
        return FittedFold.of(
            self.canonical_name,
            np.eye(train.width),
            fitted_on="none",
            num_members=train.num_members,
            member_dim=train.dim,
        )


class MeanOptions(InductiveFold):
    """The mean of the members as they are: independently trained axes do not agree, so it loses much."""

    card: ClassVar[Card] = Card(
        title="Mean of unaligned members",
        paper="SFORA, section 3.1",
        checked="reference values",
    )

    name: Literal["mean"] = "mean"

    def fit(self, train: Moments) -> FittedFold:
        """Return the average over members; only the shape of ``train`` is read."""
        matrix = np.tile(np.eye(train.dim), (train.num_members, 1)) / train.num_members
        return FittedFold.of(
            self.canonical_name, matrix, fitted_on="none", num_members=train.num_members, member_dim=train.dim
        )


class RandomOptions(InductiveFold):
    """A random orthonormal projection of the concatenation: what any fitted projection must beat."""

    card: ClassVar[Card] = Card(
        title="Random projection",
        paper="this project: what any projection of that width keeps",
        checked="orthonormal columns; the same draw anywhere",
        differences="not applicable",
    )

    name: Literal["random"] = "random"
    dim: int | None = Field(default=None, ge=1)
    """Width; null: one member's."""
    seed: int = 0
    """Of the projection."""

    def fit(self, train: Moments) -> FittedFold:
        """Draw the projection; only the shape of ``train`` is read."""
        dim = min(self.dim or train.dim, train.width)
        normal = numpy_generator(self.seed, "random fold").standard_normal((train.width, dim))
        return FittedFold.of(
            self.canonical_name,
            np.asarray(np.linalg.qr(normal)[0]),
            fitted_on="none",
            num_members=train.num_members,
            member_dim=train.dim,
        )
