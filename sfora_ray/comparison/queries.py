"""The same queries asked of two packs: would the difference hold for other test classes?

Systems of equal make only: members with members, concatenations of the same seeds, folds of as many members that
end at one width. Queries of one class rise and fall together, so classes are drawn again and classes flip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from sfora_ray.arrays import Int64
from sfora_ray.comparison.records import CONCAT_SYSTEM, FOLD_SYSTEM, SINGLE_SYSTEM, QueryTest
from sfora_ray.comparison.scored import QueryValues, ScoredPack, Seeds
from sfora_ray.comparison.source import Contender
from sfora_ray.errors import DataError
from sfora_ray.pack.summary import FoldFacts
from sfora_ray.statistics import cluster_bootstrap, clustered_permutation_test

_SEED = 0
_METRICS: tuple[Literal["recall_at_1", "map_at_r"], ...] = ("recall_at_1", "map_at_r")


def query_tests(ours: ScoredPack, theirs: ScoredPack, shared: Seeds, folds: tuple[str, ...]) -> list[QueryTest]:
    """Test every system that both packs have; ``p_holm`` is not adjusted yet.

    Args:
        ours: the baseline.
        theirs: the other pack, with the same queries.
        shared: seeds that both have.
        folds: names of folds that both have, of equal make, and that :func:`readable` has let through.
    """
    tests: list[QueryTest] = []
    for system, seeds, first, other in _systems(ours, theirs, shared, folds):
        assert (first.rows == other.rows).all(), "the same labels have the same queries"
        tests += [_test(ours, theirs, system, seeds, first, other, metric) for metric in _METRICS]
    return tests


def _systems(
    ours: ScoredPack, theirs: ScoredPack, shared: Seeds, folds: tuple[str, ...]
) -> Iterator[tuple[str, Seeds, QueryValues, QueryValues]]:
    if shared and ours.member_dim == theirs.member_dim:
        yield SINGLE_SYSTEM, shared, ours.single(shared), theirs.single(shared)
        if len(shared) > 1:
            yield CONCAT_SYSTEM, shared, ours.concat(shared), theirs.concat(shared)
    for name in folds:
        yield f"{FOLD_SYSTEM}{name}", ours.seeds, ours.folded(name), theirs.folded(name)


def _test(
    ours: ScoredPack,
    theirs: ScoredPack,
    system: str,
    seeds: Seeds,
    first: QueryValues,
    other: QueryValues,
    metric: Literal["recall_at_1", "map_at_r"],
) -> QueryTest:
    differences = other.values[metric] - first.values[metric]
    classes: Int64 = ours.labels[first.rows]
    test = clustered_permutation_test(differences, classes, _SEED)
    return QueryTest(
        baseline=ours.label,
        other=theirs.label,
        system=system,
        size=1 if system == SINGLE_SYSTEM else len(seeds),
        dim=first.dim,
        seeds=seeds,
        metric=metric,
        baseline_mean=float(first.values[metric].mean()),
        other_mean=float(other.values[metric].mean()),
        difference=float(differences.mean()),
        ci95=cluster_bootstrap(differences, classes, _SEED),
        p_value=test.p_value,
        p_holm=test.p_value,
        exact=test.exact,
        num_queries=len(differences),
        num_classes=len(set(classes.tolist())),
    )


def like_folds(first: Contender, other: Contender) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folds of both packs that are of equal make, and what is left out and why.

    Folds that were fitted on the test blocks are upper bounds of nothing that can be shipped, and are left out.
    """
    ours, theirs = _folds(first), _folds(other)
    both = [name for name in ours if name in theirs]
    if not both or len(first.source.seeds) < 2 or len(other.source.seeds) < 2:
        return (), ()
    if set(first.source.seeds) != set(other.source.seeds):
        return (), (
            f"folds of {first.label} and {other.label}: they are fitted on members of other seeds. "
            "Train the same seeds of both to compare them",
        )
    wide = [name for name in both if ours[name].dim != theirs[name].dim]
    upper = [name for name in both if name not in wide and "test" in (ours[name].fitted_on, theirs[name].fitted_on)]
    like = tuple(name for name in both if name not in wide and name not in upper)
    pair = f"{first.label} and {other.label}"
    lines = [f"{', '.join(wide)} of {pair}: these folds end at other widths"] if wide else []
    lines += [f"{', '.join(upper)} of {pair}: fitted on the test images, an upper bound"] if upper else []
    return like, tuple(lines)


def readable(ours: ScoredPack, theirs: ScoredPack, folds: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folds whose maps can be read in both packs, and what is left out and why."""
    faults: dict[str, str] = {}
    for name in folds:
        for pack in (ours, theirs):
            try:
                pack.fitted(name)
            except DataError as error:
                faults[name] = str(error)
    return tuple(name for name in folds if name not in faults), tuple(faults.values())


def _folds(pack: Contender) -> dict[str, FoldFacts]:
    folds = pack.source.summary.folds
    return {fold.name: fold for fold in folds if fold.is_of_pack and fold.name != CONCAT_SYSTEM}
