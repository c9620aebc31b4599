"""Single members against single members: would the difference hold for other seeds?"""

from __future__ import annotations

from collections.abc import Sequence

from sfora_ray.comparison.corrected import corrected
from sfora_ray.comparison.records import EffectFacts, SeedTest
from sfora_ray.comparison.source import Contender, named, shared_seeds
from sfora_ray.pack.summary import Spread
from sfora_ray.retrieval import METRIC_NAMES
from sfora_ray.statistics import (
    Effect,
    Interval,
    compare_paired,
    compare_unpaired,
    seeds_for,
    smallest_p_value,
)

_POINT = 0.01


def seed_tests(packs: Sequence[Contender]) -> tuple[tuple[SeedTest, ...], tuple[str, ...]]:
    """Test each other pack against the first, for each metric that all members have.

    Shared seeds are pairs. Where fewer than two are shared and both packs have two members, the members are taken
    as independent draws instead.

    Returns:
        The tests, and what was not compared and why.
    """
    tests: list[SeedTest] = []
    omitted: list[str] = []
    for other in packs[1:]:
        found, left_out = _pair(packs[0], other)
        tests += found
        omitted += left_out
    return corrected(tests, lambda test: test.metric), tuple(omitted)


def _pair(first: Contender, other: Contender) -> tuple[list[SeedTest], list[str]]:
    shared = shared_seeds(first.source, other.source)
    metrics = [key for key in METRIC_NAMES if _has(first, key) and _has(other, key)]
    if len(shared) >= 2:
        return [_paired(first, other, shared, key) for key in metrics], _without_partner(first, other, shared)
    if min(len(first.source.seeds), len(other.source.seeds)) >= 2:
        tests = [_welch(first, other, key) for key in metrics]
        return tests, [
            f"pairs of seeds: {first.label} and {other.label} share {_how_many(shared)}, so their members are "
            "compared as independent draws (Welch), which sees less"
        ]
    if shared:
        return [_paired(first, other, shared, key) for key in metrics], [
            f"spread over seeds: {first.label} and {other.label} share {named(shared)} alone, and one pair has no "
            "interval. Train more seeds of the same numbers",
            *_without_partner(first, other, shared),
        ]
    return [], [
        f"seeds: {first.label} and {other.label} share no seed, and one of them has a single member. "
        "Train the same seeds of both"
    ]


def _has(pack: Contender, metric: str) -> bool:
    return len(pack.source.values(metric)) == len(pack.source.seeds)


def _how_many(shared: tuple[int, ...]) -> str:
    return f"only {named(shared)}" if shared else "no seed"


def _without_partner(first: Contender, other: Contender, shared: tuple[int, ...]) -> list[str]:
    lines = []
    for pack, against in ((first, other), (other, first)):
        alone = tuple(seed for seed in pack.source.seeds if seed not in shared)
        if alone:
            lines.append(f"{named(alone)} of {pack.label}: {against.label} has no finished member of that seed")
    return lines


def _paired(first: Contender, other: Contender, shared: tuple[int, ...], metric: str) -> SeedTest:
    ours, theirs = ([pack.source.values(metric)[seed] for seed in shared] for pack in (first, other))
    found = compare_paired(theirs, ours)
    return SeedTest(
        baseline=first.label,
        other=other.label,
        metric=metric,
        test="paired",
        seeds=shared,
        baseline_spread=_spread(found.second),
        other_spread=_spread(found.first),
        difference=_spread(found.difference),
        p_value=found.p_value,
        p_holm=found.p_value,
        exact=found.exact,
        p_smallest=smallest_p_value(len(shared)),
        p_t=found.p_t,
        effect=_effect(found.effect),
        seeds_for_difference=found.seeds_needed,
        seeds_for_point=seeds_for(found.difference, _POINT),
    )


def _welch(first: Contender, other: Contender, metric: str) -> SeedTest:
    ours, theirs = (list(pack.source.values(metric).values()) for pack in (first, other))
    found = compare_unpaired(theirs, ours)
    return SeedTest(
        baseline=first.label,
        other=other.label,
        metric=metric,
        test="welch",
        seeds=(),
        baseline_spread=_spread(found.second),
        other_spread=_spread(found.first),
        difference=_spread(found.difference),
        p_value=found.p_value,
        p_holm=found.p_value,
        exact=False,
        p_smallest=None,
        p_t=None,
        effect=None,
        seeds_for_difference=None,
        seeds_for_point=None,
    )


def _spread(interval: Interval) -> Spread:
    return Spread(mean=interval.mean, std=interval.std, n=interval.n, ci95=interval.ci95)


def _effect(effect: Effect | None) -> EffectFacts | None:
    return None if effect is None else EffectFacts(d_z=effect.d_z, ci95=effect.ci95)
