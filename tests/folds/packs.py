"""Small packs: members that see one signal in their own axes, with noise."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfora_ray.arrays import Float, Float64, Int64, l2_normalize

REFERENCE = Path(__file__).parents[1] / "reference" / "folds.npz"


def load() -> dict[str, NDArray[Any]]:
    """Arrays computed by the published programs; cosines of the first rows only."""
    with np.load(REFERENCE, allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def orthogonal(rng: np.random.Generator, dim: int) -> Float64:
    """A random orthogonal matrix, reflections included."""
    return np.asarray(np.linalg.qr(rng.normal(size=(dim, dim)))[0])


def pack(
    seed: int = 0, *, members: int = 4, rows: int = 150, dim: int = 8, noise: float = 0.3
) -> tuple[list[Float], Int64]:
    """Return ``members`` blocks ``(rows, dim)`` and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, rows)
    signal = rng.normal(size=(10, dim))[labels] + 0.4 * rng.normal(size=(rows, dim))
    blocks = [signal @ orthogonal(rng, dim) + noise * rng.normal(size=(rows, dim)) for _ in range(members)]
    return [l2_normalize(block) for block in blocks], labels


def cosines(rows: Float) -> Float64:
    """``(N, N)`` cosines, in float64."""
    unit = l2_normalize(rows.astype(np.float64))
    return np.asarray(unit @ unit.T)
