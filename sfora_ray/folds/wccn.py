"""Within-class covariance normalisation of the concatenation, then the uncentred projection.

Hatch, Kajarekar, Stolcke, "Within-class covariance normalization for SVM-based speaker recognition",
Interspeech 2006. With ``W`` the pooled within-class covariance of the training rows and
``S = W + a tr(W) / width I``, rows are mapped by ``L'`` where ``L L' = S^-1``: directions in which a class
varies count less. Differs from the paper: the shrinkage ``a`` (trained embeddings have nearly flat classes,
so ``W`` alone is close to singular), pooling over rows rather than classes, and the projection to ``dim``.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy.linalg import cholesky, solve_triangular

from sfora_ray.arrays import Float64
from sfora_ray.card import Card
from sfora_ray.errors import DataError
from sfora_ray.folds.algebra import top_axes
from sfora_ray.folds.base import InductiveFold
from sfora_ray.folds.fitted import FittedFold
from sfora_ray.folds.moments import Moments


class WccnOptions(InductiveFold):
    """Within-class covariance normalisation, fitted on training labels; also of a single member."""

    card: ClassVar[Card] = Card(
        title="Within-class covariance normalisation",
        paper="Hatch, Kajarekar, Stolcke, Interspeech 2006",
        checked="a slow row-wise calculation",
        differences="shrunk towards the identity, pooled over rows; then projected",
    )

    improves_single: ClassVar[bool] = True

    name: Literal["wccn"] = "wccn"
    dim: int | None = Field(default=None, ge=1)
    """Width; null: one member's."""
    shrinkage: float = Field(default=3.0, gt=0)
    """The ``a`` of ``W + a tr(W) / width I``; flat between 1 and 30."""

    def fit(self, train: Moments) -> FittedFold:
        """Whiten within classes, then project.

        Raises:
            DataError: no two rows of a class differ, so that there is nothing to normalise by.
        """
        whitener = self._whitener(train)
        axes = top_axes(whitener.T @ train.gram @ whitener, min(self.dim or train.dim, train.num_rows))
        return FittedFold.of(
            self.canonical_name,
            whitener @ axes,
            fitted_on="train",
            num_members=train.num_members,
            member_dim=train.dim,
        )

    def _whitener(self, train: Moments) -> Float64:
        within = train.within_class_scatter() / train.num_rows
        spread = float(np.trace(within))
        if spread <= train.width * np.finfo(np.float32).eps ** 2:
            raise DataError(
                f"fold wccn: rows of a class must differ, got {train.num_rows} rows in "
                f"{len(train.classes)} classes with a within-class variance of {spread:.3g}. "
                "Use another fold, or classes with several images."
            )
        shrunk = within + self.shrinkage * spread / train.width * np.eye(train.width)
        # S = C C', so L = C^-T has L L' = S^-1; any other such L differs by a rotation, which drops out.
        lower = cholesky(shrunk, lower=True)
        return np.asarray(solve_triangular(lower, np.eye(train.width), lower=True).T)
