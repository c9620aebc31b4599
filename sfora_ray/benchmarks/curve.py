"""The curve over pack sizes from one product a member, against scoring each concatenation."""

from __future__ import annotations

import numpy as np

from sfora_ray.benchmarks.base import BenchmarkResult, time_in_turn
from sfora_ray.benchmarks.packs import made_up_pack
from sfora_ray.retrieval import pack_curve, score
from sfora_ray.statistics import curve_subsets, subset_interval

MEMBERS = 9
PER_CLASS = 20
MOST = 9


def run(*, quick: bool = False) -> BenchmarkResult:
    """Score every size 1..9 of a pack of 9 with intervals, at most nine subsets a size."""
    rows, dim, rounds = (200, 16, 1) if quick else (6_000, 512, 3)
    blocks, labels = made_up_pack(MEMBERS, rows, dim, PER_CLASS)
    subsets = curve_subsets(MEMBERS, MOST, 0)
    timing = time_in_turn(
        lambda: pack_curve(blocks, labels, subsets),
        lambda: {
            subset: score(np.concatenate([blocks[m] for m in subset], 1), labels, nmi=False).metrics()
            for subset in subsets
        },
        rounds,
    )
    _check(timing.ours, timing.theirs)
    return BenchmarkResult(
        name="curve",
        ours_seconds=timing.ours_seconds,
        theirs_seconds=timing.theirs_seconds,
        ratio=timing.theirs_seconds / timing.ours_seconds,
        mark=">= 3",
        peak_mib=timing.peak_mib,
        note=f"M {MEMBERS}, n {rows}, d {dim}, {len(subsets)} subsets; MAP@R and its intervals agree",
    )


def _check(ours: dict[tuple[int, ...], dict[str, float]], theirs: dict[tuple[int, ...], dict[str, float]]) -> None:
    for size in range(1, MEMBERS + 1):
        sides = [
            subset_interval({s: found[s]["map_at_r"] for s in found if len(s) == size}, MEMBERS)
            for found in (ours, theirs)
        ]
        ends = [(side.mean, *(side.ci95 or ())) for side in sides]
        # Sums of float32 cosines and cosines of concatenations round differently: a near tie may swap.
        assert np.allclose(ends[0], ends[1], atol=1e-3), "both sides must score alike"
