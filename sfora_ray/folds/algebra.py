"""The linear algebra that folds share, in float64."""

from __future__ import annotations

import numpy as np

from sfora_ray.arrays import Float64

WELL_CONDITIONED = 1e-8


def nearest_rotation(products: Float64) -> Float64:
    """Return ``(D, D)`` orthogonal ``R = U V'`` that best maps ``A`` to ``B``, given ``A' B``; may reflect.

    Schoenemann, "A generalized solution of the orthogonal Procrustes problem", Psychometrika 1966.
    """
    left, _, right = np.linalg.svd(products)
    return np.asarray(left @ right)


def polar_rotation(products: Float64) -> Float64:
    """Return what :func:`nearest_rotation` returns, in half the time where ``A' B`` is well conditioned.

    ``U V' = P (P' P)^(-1/2)`` from a symmetric eigenproblem; one Newton-Schulz step takes off its rounding.
    The root halves the digits, so nearly singular products are left to the singular value decomposition.
    """
    values, vectors = np.linalg.eigh(products.T @ products)
    if values[0] <= WELL_CONDITIONED * values[-1]:
        return nearest_rotation(products)
    turn = products @ (vectors / np.sqrt(values)) @ vectors.T
    return np.asarray(1.5 * turn - 0.5 * turn @ (turn.T @ turn))


def top_axes(scatter: Float64, dim: int) -> Float64:
    """Return ``(W, K)`` the leading eigenvectors of a ``(W, W)`` scatter matrix, at most as many as its rank.

    Each is signed so that its largest entry is positive: the same axes on every machine.
    """
    values, vectors = np.linalg.eigh(scatter)
    floor = max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
    rank = int(np.count_nonzero(values > floor))
    axes = vectors[:, ::-1][:, : min(dim, rank)]
    largest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.sign(largest))
