"""Sign-flip permutation tests of paired differences (Fisher, The Design of Experiments, 1935).

If two methods do equally well, each difference might as well have had the other sign. The two-sided p-value is the
share of all sign patterns whose sum lies at least as far from zero as the one seen. ``n`` pairs have ``2**n``
patterns, so the p-value cannot fall below ``2**(1 - n)``: five seeds can never show five per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfora_ray.arrays import Float, Float64, Int64
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator
from sfora_ray.statistics.intervals import finite_values

EXACT_PAIRS = 16
"""Up to so many pairs all sign patterns are counted: 65,536."""
DRAWS = 10_000
_TOLERANCE = 1e-10
_CHUNK_FLIPS = 2**22


@dataclass(frozen=True)
class PermutationTest:
    """A two-sided p-value, and how it was found.

    Attributes:
        p_value: of no difference.
        exact: all sign patterns were counted; else ``(hits + 1) / (draws + 1)`` of drawn ones, which is never 0
            (Phipson and Smyth, SAGMB 2010).
        draws: patterns counted or drawn.
    """

    p_value: float
    exact: bool
    draws: int


def permutation_test(differences: Sequence[float] | Float, *, seed: int = 0, draws: int = DRAWS) -> PermutationTest:
    """Test whether paired differences, such as two methods on the same seeds, are around zero.

    Args:
        differences: ``(n,)``; where all are zero the p-value is 1.
        seed: of the draws, where there are too many patterns to count.
        draws: so many then.

    Raises:
        DataError: no differences, or one that is not finite.
    """
    numbers = finite_values(differences)
    # Equal sums come out a few bits apart when added in another order; they are as extreme as the one seen.
    extreme = abs(float(numbers.sum())) - _TOLERANCE * float(np.abs(numbers).sum())
    if len(numbers) <= EXACT_PAIRS:
        sums = _all_sums(numbers)
        return PermutationTest(float(np.mean(np.abs(sums) >= extreme)), True, len(sums))
    hits = sum(int((np.abs(sums) >= extreme).sum()) for sums in _drawn_sums(numbers, seed, draws))
    return PermutationTest((hits + 1) / (draws + 1), False, draws)


def clustered_permutation_test(
    differences: Sequence[float] | Float, clusters: Int64, seed: int, *, draws: int = DRAWS
) -> PermutationTest:
    """Test paired differences of queries of which those of one class rise and fall together: whole classes flip.

    Args:
        differences: ``(Q,)`` one a query.
        clusters: ``(Q,)`` the class of each query.
        seed: of the draws, where there are too many classes to count all patterns.
        draws: so many then.

    Raises:
        DataError: as for :func:`permutation_test`, or another number of clusters.
    """
    numbers = finite_values(differences)
    if np.shape(clusters) != numbers.shape:
        raise DataError(
            f"permutation test: each difference needs its class, got {len(numbers)} differences and classes of "
            f"shape {np.shape(clusters)}. Pass labels[per_query.rows]."
        )
    _, places = np.unique(clusters, return_inverse=True)
    # The mean over queries is a sum over classes, so a class that flips is its sum that flips.
    return permutation_test(np.bincount(places, numbers).astype(np.float64), seed=seed, draws=draws)


def smallest_p_value(num_pairs: int) -> float:
    """Return the least two-sided p-value that sign flips of ``num_pairs`` pairs can give."""
    return min(1.0, 2.0 ** (1 - num_pairs))


def _all_sums(numbers: Float64) -> Float64:
    sums = np.zeros(1)
    for number in numbers:
        sums = np.concatenate([sums + number, sums - number])
    return sums  # (2**n,)


def _drawn_sums(numbers: Float64, seed: int, draws: int) -> list[Float64]:
    generator = numpy_generator(seed, "sign flips")
    most = max(1, _CHUNK_FLIPS // len(numbers))
    sizes = [min(most, draws - start) for start in range(0, draws, most)]
    return [numbers.sum() - 2 * (_flips(generator, size, len(numbers)) @ numbers) for size in sizes]


def _flips(generator: np.random.Generator, rows: int, columns: int) -> Float64:
    packed = np.frombuffer(generator.bytes((rows * columns + 7) // 8), np.uint8)
    return np.unpackbits(packed, count=rows * columns).reshape(rows, columns).astype(np.float64)
