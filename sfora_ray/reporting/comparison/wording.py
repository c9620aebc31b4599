"""How differences and tests are written: points of per cent with their sign, p-values never below what was counted."""

from __future__ import annotations

from collections.abc import Iterable

from sfora_ray.comparison.records import CONCAT_SYSTEM, SINGLE_SYSTEM, Comparison, Entry, QueryTest, SeedTest
from sfora_ray.reporting.wording import ABSENT

_STAMPS = {
    "validation": "selection: validation",
    "test": "selection: test, optimistic",
    "last": "selection: none, last epochs",
}
_TINY = 0.001


def points(share: float | None) -> str:
    """Write a difference of shares as signed per cent points, ``+0.69``."""
    return ABSENT if share is None else f"{100 * share:+.2f}"


def ends(bounds: tuple[float, float] | None) -> str:
    """Write an interval of differences, ``[+0.18, +1.20]``."""
    return ABSENT if bounds is None else f"[{points(bounds[0])}, {points(bounds[1])}]"


def difference(value: float, bounds: tuple[float, float] | None) -> str:
    """Write a difference with its interval; one without an interval stands alone."""
    return points(value) if bounds is None else f"{points(value)} {ends(bounds)}"


def p_value(value: float | None) -> str:
    """Write a p-value with three digits, for 0.0625 is the least that five pairs give; tiny ones as ``< 0.001``."""
    if value is None:
        return ABSENT
    return f"< {_TINY}" if value < _TINY else f"{value:.3g}"


def p_equals(value: float) -> str:
    """Write a p-value after its letter: ``p = 0.0625``, ``p < 0.001``."""
    written = p_value(value)
    return f"p {written}" if written.startswith("<") else f"p = {written}"


def effect(test: SeedTest) -> str:
    """Write an effect size with its interval, in standard deviations of the differences."""
    if test.effect is None:
        return ABSENT
    d_z, bounds = test.effect.d_z, test.effect.ci95
    return f"{d_z:+.2f}" if bounds is None else f"{d_z:+.2f} [{bounds[0]:+.2f}, {bounds[1]:+.2f}]"


def count(number: int | None) -> str:
    """Write a count that may be unknown."""
    return ABSENT if number is None else f"{number:,}"


def num_seeds(test: SeedTest) -> str:
    """Write what the test counts: pairs of one seed, or members of both packs."""
    if test.test == "paired":
        return str(len(test.seeds))
    return f"{test.baseline_spread.n} and {test.other_spread.n}, unpaired"


def system(test: QueryTest) -> str:
    """Name what the queries were asked of: ``one member``, ``concat of 5``, ``wccn of 5``."""
    if test.system == SINGLE_SYSTEM:
        return "one member"
    name = "concat" if test.system == CONCAT_SYSTEM else test.fold
    return f"{name} of {test.size}"


def selection_stamp(entries: Iterable[Entry]) -> str:
    """Return how epochs were chosen, of all packs or of each; what was chosen on test always says so."""
    by_split: dict[str, list[str]] = {}
    for entry in entries:
        by_split.setdefault(entry.facts.selection, []).append(entry.label)
    if len(by_split) == 1:
        return _STAMPS[next(iter(by_split))]
    return "; ".join(f"{', '.join(labels)}: {_STAMPS[split]}" for split, labels in by_split.items())


def selection_sentence(entries: Iterable[Entry]) -> str:
    """Return :func:`selection_stamp` as a sentence."""
    stamp = selection_stamp(entries)
    return f"{stamp[0].upper()}{stamp[1:]}."


def members_stamp(entries: Iterable[Entry]) -> str:
    """Return the members behind the packs: ``n = 5`` where all have as many, else each pack's."""
    counts = {entry.label: entry.facts.num_members for entry in entries}
    if len(set(counts.values())) == 1:
        return f"n = {next(iter(counts.values()))} members each"
    return "n = " + ", ".join(f"{number} ({label})" for label, number in counts.items())


def title(comparison: Comparison) -> str:
    """Return the comparison's name: ``A vs B vs C``."""
    return " vs ".join(entry.label for entry in comparison.entries)
