"""The one record of a comparison: what a table, a figure or the tracker says about several packs.

Pairs are always ``(baseline, other)``: the first entry against each of the others, and every difference is
``other - baseline``, so that above zero the other is better. Like is compared with like only: members with
members, concatenations of as many members of equal width, folds of equal width.
"""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from sfora_ray.options import Options
from sfora_ray.pack.summary import CurvePoint, FoldFacts, PackFacts, Spread

Ends = tuple[float, float]
"""Lower and upper end of a 95 % interval."""

SINGLE_SYSTEM = "single"
CONCAT_SYSTEM = "concat"
FOLD_SYSTEM = "fold:"
"""What the ``system`` of a fold starts with, e.g. ``fold:gpa``."""


class LearningPoint(Options):
    """One epoch of the learning curve of a pack: the mean over its finished members."""

    epoch: int
    mean: float
    ci95: Ends | None
    """Student's interval of the mean over members; absent for one member."""
    n: int
    """Members that have a value in this epoch."""


class Entry(Options):
    """One pack as it enters the comparison."""

    label: str
    """Unique among the entries: the pack's name, with its digest or a number where names repeat."""
    source: str
    """The run folder, or the tracker's run id."""
    has_folder: bool
    """Whether the embeddings were at hand; without them only members over seeds are compared."""
    facts: PackFacts
    seeds: tuple[int, ...]
    """Of the members that finished, in the pack's order."""
    singletons: Literal["skip", "miss"]
    """What becomes of a query whose class has one image; the same in all entries."""
    single: dict[str, Spread]
    """Each metric over single members."""
    curve: tuple[CurvePoint, ...]
    """Concatenations of 1, 2, ... all of this pack's own members."""
    folds: tuple[FoldFacts, ...]
    epochs: dict[str, tuple[LearningPoint, ...]] = {}
    """Learning curves by ``<split>.<metric>``, such as ``test.recall_at_1``, and ``train.loss``."""

    @property
    def standing(self) -> str:
        """Return what the pack's best-known number is a number of: ``ensemble of 4`` or ``single``."""
        return "single" if self.facts.num_members == 1 else f"ensemble of {self.facts.num_members}"

    @property
    def concat_dim(self) -> int:
        """Return the width of the concatenation of all members."""
        return self.facts.num_members * self.facts.dim


class Pair(Options):
    """What all tests share: whom they compare."""

    baseline: str
    """Label of the first entry."""
    other: str
    """Label of the entry that it is compared with."""


class EffectFacts(Options):
    """The difference in units of the standard deviation of the paired differences."""

    d_z: float
    """Cohen's d_z with Hedges' correction of its small-sample bias."""
    ci95: Ends | None


class SeedTest(Pair):
    """Single members against single members, over seeds.

    ``paired``: the same seed is one pair; intervals are Student's, the p-value is of sign flips. ``welch``: fewer
    than two seeds are shared, so members are independent draws; interval and p-value are Welch's.
    """

    metric: str
    test: Literal["paired", "welch"]
    seeds: tuple[int, ...]
    """The shared seeds, one pair each; empty for ``welch``."""
    baseline_spread: Spread
    """Over the seeds compared, which may be fewer than the pack has."""
    other_spread: Spread
    difference: Spread
    """``other - baseline``. Its ``std`` is that of the paired differences, None for ``welch``; its ``n`` counts pairs,
    or for ``welch`` the members of both packs."""
    p_value: float
    """Two-sided: of the permutation test where paired, of Welch's t otherwise."""
    p_holm: float
    """Adjusted over all pairs of this metric."""
    exact: bool
    """Whether all sign flips were counted; False where they were drawn, and for ``welch``."""
    p_smallest: float | None
    """The least p-value that so few pairs can give: ``2 ** (1 - n)``. Below five per cent only from six seeds on.
    None for ``welch``."""
    p_t: float | None
    """Of the paired t test, which believes that differences are normal; None of one pair, or where all are equal."""
    effect: EffectFacts | None
    """None of one pair, where all differences are equal, and for ``welch``."""
    seeds_for_difference: int | None
    """Seeds that a paired t test needs to see this very difference with power .8; None where it is zero or unknown."""
    seeds_for_point: int | None
    """Seeds that it needs to see a difference of .01, with the spread found here."""


class QueryTest(Pair):
    """The same queries asked of both packs: what would move if other test classes were drawn, with these members."""

    system: str
    """``single`` (each query's mean over members), ``concat``, or ``fold:<name>``."""
    size: int
    """Members in each system: 1 for ``single``."""
    dim: int
    """Width of what is searched; equal on both sides."""
    seeds: tuple[int, ...]
    """The members compared, of both packs; for folds all of each pack."""
    metric: Literal["recall_at_1", "map_at_r"]
    baseline_mean: float
    other_mean: float
    difference: float
    """``other_mean - baseline_mean``."""
    ci95: Ends | None
    """Of the difference, by bootstrap over test classes; None of one class."""
    p_value: float
    """Two-sided, of flipping whole classes."""
    p_holm: float
    """Adjusted over all pairs of this metric and system."""
    exact: bool
    num_queries: int
    num_classes: int

    @property
    def fold(self) -> str:
        """Return the fold's name, or an empty string where the system is none."""
        return self.system.removeprefix(FOLD_SYSTEM) if self.system.startswith(FOLD_SYSTEM) else ""


class SizePoint(Pair):
    """The ablation at one pack size: concatenations of the same shared seeds on both sides."""

    size: int
    dim: int
    """Width of each concatenation."""
    metric: str
    baseline_mean: float
    other_mean: float
    difference: float
    ci95: Ends | None
    """Of the difference over seeds, by the delete-one-seed jackknife; None of all shared seeds together."""
    subsets: int
    """Choices of ``size`` among the shared seeds that were averaged."""
    seeds: tuple[int, ...]
    """The shared seeds, of which subsets were chosen."""


class Comparison(Options):
    """Several packs, what may be said about their differences, and what may not."""

    format: Literal[1] = 1
    entries: tuple[Entry, ...]
    """The first is the baseline."""
    labels: tuple[str, ...]
    """What must stand beside every number: selection on test, other weights, ensembles of unequal size, and so on."""
    seeds: tuple[SeedTest, ...]
    queries: tuple[QueryTest, ...]
    sizes: tuple[SizePoint, ...]
    omitted: tuple[str, ...]
    """What was not compared, and why."""

    @model_validator(mode="after")
    def _pairs_name_entries(self) -> Comparison:
        known = [entry.label for entry in self.entries]
        if len(set(known)) != len(known):
            raise ValueError(f"entries must have different labels, got {known}")
        for pair in (*self.seeds, *self.queries, *self.sizes):
            if pair.baseline != known[0] or pair.other not in known[1:]:
                raise ValueError(f"a pair must be the first entry and another, got {pair.baseline} and {pair.other}")
        return self

    @property
    def baseline(self) -> Entry:
        """Return the entry that all others are compared with."""
        return self.entries[0]

    @property
    def others(self) -> tuple[Entry, ...]:
        """Return all entries but the baseline."""
        return self.entries[1:]
