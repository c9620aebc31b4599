"""Which classes to train on together: those whose images the network takes for one another's.

Greedy selection of negative classes of N-pairs (Sohn, NIPS 2016, section 3.2.1). The paper does not say how much a
class violates the triplet constraint; here it is by the nearest image of the other class and the farthest of the own.
"""

from __future__ import annotations

import numpy as np

from sfora_ray.arrays import Float, Float64, Int64

_DECIMALS = 9
"""Similarities are compared to so many decimals, so that rounding does not decide between equal ones."""


def class_violations(embeddings: Float, labels: Int64) -> Float64:
    """Return ``(C, C)`` how much class ``c`` (column) violates the triplet constraint of class ``s`` (row).

    For an example ``a`` of ``s`` and its least similar other example ``p``, a violation by ``n`` of ``c`` is
    ``a.n - a.p``; the largest counts. ``a.p`` is 0 for the only example of a class. The diagonal is ``-inf``.

    Args:
        embeddings: ``(n, D)`` examples.
        labels: ``(n,)`` their classes, ascending.
    """
    rows = embeddings.astype(np.float64)
    similarities = np.round(rows @ rows.T, _DECIMALS)  # (n, n)
    same = labels[:, None] == labels
    other = same & ~np.eye(len(labels), dtype=bool)
    nearest = np.where(other, similarities, np.inf).min(axis=1)  # (n,)
    positives = np.where(np.isfinite(nearest), nearest, 0.0)
    violations = np.where(same, -np.inf, similarities - positives[:, None])
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
    by_anchor_class = np.maximum.reduceat(violations, starts, axis=0)  # (C, n)
    return np.asarray(np.maximum.reduceat(by_anchor_class, starts, axis=1), np.float64)  # (C, C)


def select_classes(violations: Float64, number: int, generator: np.random.Generator) -> Int64:
    """Return ``number`` classes, each but the first the one that most violates any chosen before; ties at random.

    Args:
        violations: ``(C, C)`` of :func:`class_violations`, ``C`` not below ``number``.
        number: classes to choose.
        generator: draws the first class and among equal ones.
    """
    chosen = [int(generator.integers(len(violations)))]
    scores = violations[chosen[0]].copy()
    while len(chosen) < number:
        scores[chosen[-1]] = -np.inf
        chosen.append(int(generator.choice(np.flatnonzero(scores == scores.max()))))
        scores = np.maximum(scores, violations[chosen[-1]])
        scores[chosen] = -np.inf
    return np.array(chosen, np.int64)
