"""Generalised Procrustes analysis: every member turned onto the pack's consensus, then averaged.

Gower, "Generalized Procrustes analysis", Psychometrika 1975; Ten Berge, Psychometrika 1977. The plain
consensus ``Z = mean_m b_m R_m`` enters the iteration only through ``b_m' Z = mean_j G_mj R_j``, and its
change only through the Gram matrix ``G``, so no iteration touches a row. Differs from the published ensemble
programs: the consensus is not normalised row by row, reflections are always allowed, and the iteration stops
when the consensus stands still. The option ``reference`` runs their two procedures instead (``published``).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from threadpoolctl import threadpool_limits

from sfora_ray.arrays import Float, Float64, Int64
from sfora_ray.card import Card
from sfora_ray.errors import ConfigError
from sfora_ray.folds.algebra import polar_rotation
from sfora_ray.folds.base import FoldOptions, InductiveFold, TransductiveFold
from sfora_ray.folds.fitted import FittedFold, FittedOn
from sfora_ray.folds.moments import Moments
from sfora_ray.folds.published import PublishedGpa, published_rotations

THREADS = 2


class GpaBase(FoldOptions):
    """What the inductive and the transductive fold share."""

    start: Literal["first", "medoid"] = "first"
    """Member that the first consensus is: number 0, or the one nearest to all others once aligned."""
    tolerance: float = Field(default=1e-7, gt=0)
    """Relative change of the consensus at which the iteration stops."""
    max_iterations: int = Field(default=100, ge=1)
    reference: PublishedGpa | None = None
    """Run a published row-wise procedure of 20 iterations instead; needs rows."""

    @property
    def needs_rows(self) -> bool:
        """Whether a published procedure was asked for."""
        return self.reference is not None

    def _from_moments(self, moments: Moments, fitted_on: FittedOn) -> FittedFold:
        if self.reference is not None:
            raise ConfigError(
                f"folds.{self.canonical_name}: the published procedure needs rows, got moments. "
                "Fit it with fit_rows, or leave reference out."
            )
        rotations = align(moments, start=self.start, tolerance=self.tolerance, max_iterations=self.max_iterations)
        return _fold(self.canonical_name, rotations, fitted_on)

    def _from_rows(self, blocks: Sequence[Float], labels: Int64, fitted_on: FittedOn) -> FittedFold:
        if self.reference is None:
            return self._from_moments(Moments.of(blocks, labels), fitted_on)
        return _fold(self.canonical_name, published_rotations(blocks, self.reference), fitted_on)


class GpaOptions(GpaBase, InductiveFold):
    """GPA with rotations fitted on training classes."""

    card: ClassVar[Card] = Card(
        title="GPA, inductive",
        paper="Gower, Psychometrika 1975; SFORA",
        checked="reference values of the published ensemble program; a slow row-wise procedure",
        differences="starts from a member, reflects, stops on convergence; `reference` runs the published variant",
    )

    name: Literal["gpa"] = "gpa"

    def fit(self, train: Moments) -> FittedFold:
        """Align the members on the training classes."""
        return self._from_moments(train, "train")

    def fit_rows(self, train: Sequence[Float], labels: Int64) -> FittedFold:
        """Align the members on training rows."""
        return self._from_rows(train, labels, "train")


class GpaTransductiveOptions(GpaBase, TransductiveFold):
    """GPA with rotations fitted on the scored blocks."""

    card: ClassVar[Card] = Card(
        title="GPA, transductive (an upper bound)",
        paper="Gower, Psychometrika 1975; SFORA",
        checked="reference values of the published ensemble program",
        differences="stops on convergence; `reference` runs the published variant",
    )

    name: Literal["gpa_transductive"] = "gpa_transductive"

    def fit_transductive(self, scored: Moments) -> FittedFold:
        """Align the members on the scored blocks."""
        return self._from_moments(scored, "test")

    def fit_rows_transductive(self, scored: Sequence[Float], labels: Int64) -> FittedFold:
        """Align the members on scored rows."""
        return self._from_rows(scored, labels, "test")


def align(moments: Moments, *, start: Literal["first", "medoid"], tolerance: float, max_iterations: int) -> Float64:
    """Return ``(M, D, D)`` rotations of the members onto their consensus."""
    num_members, dim = moments.num_members, moments.dim
    first = 0 if start == "first" else medoid(moments)
    targets = moments.gram[:, first * dim : (first + 1) * dim].reshape(num_members, dim, dim)
    rotations = _rotate(targets)
    products = moments.gram @ rotations.reshape(-1, dim)  # (M*D, D)
    for _ in range(max_iterations - 1):
        updated = _rotate(products.reshape(num_members, dim, dim))
        moved = moments.gram @ updated.reshape(-1, dim)
        size = np.vdot(rotations, products)
        change = np.vdot(updated - rotations, moved - products)
        rotations, products = updated, moved
        if change <= tolerance**2 * size:
            break
    return rotations


def medoid(moments: Moments) -> int:
    """Return the member whose aligned distance to all others is least: the largest sum of nuclear norms."""
    agreement = [
        sum(np.linalg.norm(moments.block(m, j), "nuc") for j in range(moments.num_members))
        for m in range(moments.num_members)
    ]
    return int(np.argmax(np.array(agreement)))


def _rotate(targets: Float64) -> Float64:
    # One small decomposition a member, side by side. Threads within one gain little, and on a busy machine they
    # wait for each other: 50 s for what takes 2.
    with threadpool_limits(1), ThreadPoolExecutor(THREADS) as pool:
        return np.stack(list(pool.map(polar_rotation, targets)))  # (M, D, D)


def _fold(name: str, rotations: Float64, fitted_on: FittedOn) -> FittedFold:
    num_members, dim, _ = rotations.shape
    return FittedFold.of(
        name,
        rotations.reshape(-1, dim) / num_members,
        fitted_on=fitted_on,
        num_members=num_members,
        member_dim=dim,
    )
