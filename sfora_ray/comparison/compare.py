"""From finished packs to one record of what may be said about their differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfora_ray.comparison.compatible import labels_of, refuse_unlike
from sfora_ray.comparison.corrected import corrected
from sfora_ray.comparison.entries import contenders, entry_of
from sfora_ray.comparison.queries import like_folds, query_tests, readable
from sfora_ray.comparison.records import Comparison, QueryTest, SizePoint
from sfora_ray.comparison.scored import ScoredPack, refuse_other_queries
from sfora_ray.comparison.seeds import seed_tests
from sfora_ray.comparison.sizes import size_points
from sfora_ray.comparison.source import Contender, Source, shared_seeds

Say = Callable[[str], None]
Compared = tuple[list[QueryTest], list[SizePoint], list[str]]


def silent(text: str) -> None:
    """Say nothing."""


def compare(
    sources: Sequence[Source], labels: Sequence[str] | None = None, *, device: str = "cpu", say: Say = silent
) -> Comparison:
    """Compare the first pack with each of the others.

    Args:
        sources: the baseline, then the others.
        labels: a name for each; the packs' own if None.
        device: where queries are scored.
        say: told what is being done.

    Raises:
        InputError: the packs were tested on other images or score them otherwise, a label repeats, or embeddings
            that a summary tells of are absent or damaged.
        SforaError: a pack's embeddings are not finite, or its members disagree about the images.
    """
    packs = contenders(sources, labels)
    refuse_unlike(packs)
    seeds, omitted = seed_tests(packs)
    queries, sizes, left_out = _with_embeddings(packs, device, say)
    return Comparison(
        entries=tuple(entry_of(pack) for pack in packs),
        labels=labels_of(packs),
        seeds=seeds,
        queries=corrected(queries, lambda test: (test.metric, test.system)),
        sizes=tuple(sizes),
        omitted=(*omitted, *left_out),
    )


def _with_embeddings(packs: Sequence[Contender], device: str, say: Say) -> Compared:
    without = [
        f"queries and ensembles of {pack.label}: its run folder is not at hand, only its records"
        for pack in packs
        if pack.source.folder is None
    ]
    ours = ScoredPack.read(packs[0], device)
    if ours is None:
        return [], [], without
    queries: list[QueryTest] = []
    sizes: list[SizePoint] = []
    for other in packs[1:]:
        theirs = ScoredPack.read(other, device)
        if theirs is not None:
            say(f"comparing {other.label} with {packs[0].label}, query by query")
            tests, points, left_out = _pair((packs[0], ours), (other, theirs))
            queries, sizes, without = queries + tests, sizes + points, without + left_out
    return queries, sizes, without


def _pair(first: tuple[Contender, ScoredPack], other: tuple[Contender, ScoredPack]) -> Compared:
    (one, ours), (two, theirs) = first, other
    refuse_other_queries(ours, theirs)
    shared = shared_seeds(one.source, two.source)
    like, left_out = like_folds(one, two)
    folds, faults = readable(ours, theirs, like)
    tests = query_tests(ours, theirs, shared, folds)
    unlike = _why_no_ensembles(one, two, shared)
    points = [] if unlike else size_points(ours, theirs, shared)
    return tests, points, [*unlike, *left_out, *faults]


def _why_no_ensembles(first: Contender, other: Contender, shared: tuple[int, ...]) -> list[str]:
    pair = f"{first.label} and {other.label}"
    if first.dim != other.dim:
        return [
            f"ensembles and queries of single members of {pair}: members are {first.dim} and {other.dim} wide. Folds "
            "of one width can be compared; so can members, over seeds"
        ]
    if not shared:
        return [f"ensembles of {pair}: they share no seed. Train the same seeds of both"]
    return []
