"""Packs within a pack: which members to take for the curve over pack sizes, and how sure its points are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from sfora_ray.arrays import Float64, Int64
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator
from sfora_ray.statistics.intervals import Interval, around

Subset = tuple[int, ...]
ATTEMPTS = 100


def choose_subsets(num_members: int, size: int, most: int, seed: int) -> tuple[Subset, ...]:
    """Return at most ``most`` different subsets of ``size`` members: all of them if there are no more.

    A sample takes the members used least so far, by lot among equals, so each appears about equally often.

    Raises:
        DataError: a size that the pack does not have, or ``most`` below 1.
    """
    if not 1 <= size <= num_members or most < 1:
        raise DataError(
            f"pack curve: needs a size in 1..{num_members} and at least one subset, got size {size} "
            f"and {most} subsets. Choose a smaller size."
        )
    if math.comb(num_members, size) <= most:
        return tuple(itertools.combinations(range(num_members), size))
    generator = numpy_generator(seed, "subsets", num_members, size)
    chosen: set[Subset] = set()
    used = np.zeros(num_members, np.int64)
    while len(chosen) < most:
        subset = _fresh(used, size, chosen, generator)
        chosen.add(subset)
        used[list(subset)] += 1
    return tuple(sorted(chosen))


def _fresh(used: Int64, size: int, taken: set[Subset], generator: np.random.Generator) -> Subset:
    for attempt in itertools.count():
        # The least used may form no new subset; then, and only then, use counts are forgotten.
        weight = used if attempt < ATTEMPTS else np.zeros_like(used)
        order = np.lexsort((generator.random(len(used)), weight))
        subset = tuple(sorted(int(member) for member in order[:size]))
        if subset not in taken:
            return subset
    raise AssertionError("unreachable: there are more subsets than taken")


def curve_subsets(num_members: int, most: int, seed: int) -> tuple[Subset, ...]:
    """Return the subsets of every size 1..M, at most ``most`` a size."""
    sizes = range(1, num_members + 1)
    return tuple(subset for size in sizes for subset in choose_subsets(num_members, size, most, seed))


def subset_interval(values: Mapping[Subset, float], num_members: int) -> Interval:
    """Return the mean of a metric over subsets of one size, with an interval that knows they overlap.

    Subsets share members, so they are no independent values; the members are. The standard error is the
    delete-one-member jackknife of the mean over subsets (Arvesen, Ann. Math. Stat. 1969), with
    ``num_members - 1`` degrees of freedom; for single members it is Student's interval exactly.

    Args:
        values: the metric of each subset.
        num_members: M; no interval is given of the whole pack, or where a member is in every subset.

    Raises:
        DataError: no values, or subsets of different sizes.
    """
    if len({len(subset) for subset in values}) != 1:
        raise DataError(
            f"pack curve: needs subsets of one size, got {sorted({len(s) for s in values})}. Summarise size by size."
        )
    numbers = np.array(list(values.values()), dtype=np.float64)
    mean = float(numbers.mean())
    std = float(numbers.std(ddof=1)) if len(numbers) > 1 else None
    return Interval(mean, std, len(numbers), _jackknife(list(values), numbers, num_members))


def _jackknife(subsets: Sequence[Subset], numbers: Float64, num_members: int) -> tuple[float, float] | None:
    without = np.array([[member not in subset for subset in subsets] for member in range(num_members)])  # (M, S)
    left = without.sum(1)
    if num_members < 2 or not left.all():
        return None
    means = (without @ numbers) / left
    variance = (num_members - 1) / num_members * float(np.sum((means - means.mean()) ** 2))
    return around(float(numbers.mean()), math.sqrt(variance), num_members - 1)
