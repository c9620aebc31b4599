"""The two row-wise GPA procedures of the published ensemble programs, as they run.

Both normalise every row of the consensus and run 20 iterations without a test of convergence.
``transductive`` starts from member 0 and allows reflections. ``inductive`` starts from the unaligned mean of
the members, which can cancel, forces proper rotations by flipping the last singular direction, so that
mirrored members cannot be aligned, and returns the rotations onto the consensus before the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sfora_ray.arrays import Float, Float64, l2_normalize
from sfora_ray.folds.algebra import nearest_rotation

PublishedGpa = Literal["transductive", "inductive"]
ITERATIONS = 20


def published_rotations(blocks: Sequence[Float], kind: PublishedGpa, iterations: int = ITERATIONS) -> Float64:
    """Return ``(M, D, D)`` rotations of ``M`` blocks ``(N, D)``, in the blocks' precision."""
    rows = [l2_normalize(np.asarray(block)) for block in blocks]
    solve = nearest_rotation if kind == "transductive" else _proper_rotation
    consensus = rows[0] if kind == "transductive" else l2_normalize(np.mean(rows, axis=0))
    rotations: list[Float64] = []
    for _ in range(iterations):
        rotations = [solve(block.T @ consensus) for block in rows]
        aligned = [block @ rotation for block, rotation in zip(rows, rotations, strict=True)]
        consensus = l2_normalize(np.mean(aligned, axis=0))
    return np.stack(rotations)


def _proper_rotation(products: Float64) -> Float64:
    left, _, right = np.linalg.svd(products)
    if np.linalg.det(left @ right) < 0:
        left[:, -1] *= -1
    return np.asarray(left @ right)
