"""Projections of the concatenation on its leading axes, with its mean removed or kept in.

Centred: principal components of the training rows, and their mean is subtracted from what is transformed.
Uncentred: the leading right singular vectors of the training rows themselves, which keep the most of the
concatenation's inner products. At most as many axes as the fitted rows have: 30 rows give 30, or 29 when
centred (a singular value decomposition would return a 30th whose direction is rounding error).
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from sfora_ray.arrays import Float64
from sfora_ray.card import Card
from sfora_ray.folds.algebra import top_axes
from sfora_ray.folds.base import InductiveFold, TransductiveFold
from sfora_ray.folds.fitted import FittedFold, FittedOn
from sfora_ray.folds.moments import Moments

Width = Field(default=None, ge=1)


class UncentredOptions(InductiveFold):
    """Uncentred projection fitted on training classes."""

    card: ClassVar[Card] = Card(
        title="Uncentred train projection",
        paper="SFORA, section 5",
        checked="reference values; singular vectors of the rows",
    )

    name: Literal["uncentred"] = "uncentred"
    dim: int | None = Width
    """Width; null: one member's."""

    def fit(self, train: Moments) -> FittedFold:
        """Take the leading axes of the Gram matrix."""
        return FittedFold.of(
            self.canonical_name,
            top_axes(train.gram, min(self.dim or train.dim, train.num_rows)),
            fitted_on="train",
            num_members=train.num_members,
            member_dim=train.dim,
        )


class PcaOptions(InductiveFold):
    """Principal components fitted on training classes."""

    card: ClassVar[Card] = Card(
        title="PCA of the train classes",
        paper="Pearson 1901",
        checked="reference values; scikit-learn",
    )

    name: Literal["pca"] = "pca"
    dim: int | None = Width
    """Width; null: one member's."""

    def fit(self, train: Moments) -> FittedFold:
        """Take the leading axes of the covariance, and the training mean."""
        return _principal_components(self.canonical_name, train, self.dim, "train")


class PcaTransductiveOptions(TransductiveFold):
    """Principal components fitted on the scored blocks."""

    card: ClassVar[Card] = Card(
        title="PCA of the test classes (an upper bound)",
        paper="SFORA, section 5",
        checked="reference values",
    )

    name: Literal["pca_transductive"] = "pca_transductive"
    dim: int | None = Width
    """Width; null: one member's."""

    def fit_transductive(self, scored: Moments) -> FittedFold:
        """Take the leading axes of the scored blocks' covariance, and their mean."""
        return _principal_components(self.canonical_name, scored, self.dim, "test")


def _principal_components(name: str, moments: Moments, dim: int | None, fitted_on: FittedOn) -> FittedFold:
    mean: Float64 = moments.mean
    scatter = moments.gram - moments.num_rows * np.outer(mean, mean)
    return FittedFold.of(
        name,
        top_axes(scatter, min(dim or moments.dim, max(1, moments.num_rows - 1))),
        mean=mean,
        fitted_on=fitted_on,
        num_members=moments.num_members,
        member_dim=moments.dim,
    )
