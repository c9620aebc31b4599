"""How numbers and names are written in a report: shares as per cent, intervals in brackets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sfora_ray.pack.summary import FittedOn, Spread

ABSENT = "–"

METRIC_TITLES: dict[str, str] = {
    "recall_at_1": "R@1",
    "recall_at_2": "R@2",
    "recall_at_4": "R@4",
    "recall_at_8": "R@8",
    "map_at_r": "MAP@R",
    "mean_average_precision": "mAP",
    "r_precision": "R-precision",
    "nmi": "NMI",
    "coarse_recall_at_1": "coarse R@1",
    "coarse_map_at_r": "coarse MAP@R",
}

FITTED_ON_TITLES: dict[FittedOn, str] = {
    "none": "nothing",
    "train": "train (inductive)",
    "test": "test (transductive: upper bound)",
}

SELECTION_STAMPS: dict[str, str] = {
    "validation": "epochs selected on validation",
    "test": "epochs selected on test, optimistic",
    "last": "last epochs, nothing selected",
}


def metric_title(key: str) -> str:
    """Return the name readers know a metric by; an unknown key names itself."""
    return METRIC_TITLES.get(key, key)


def metric_order(mappings: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return every metric key that occurs: the known ones in their usual order, then the others by name."""
    found = {key for mapping in mappings for key in mapping}
    known = tuple(key for key in METRIC_TITLES if key in found)
    return known + tuple(sorted(found - set(known)))


def percent(share: float | None) -> str:
    """Write a share as per cent with two decimals, without the sign."""
    return ABSENT if share is None else f"{100 * share:.2f}"


def interval(bounds: tuple[float, float] | None) -> str:
    """Write an interval of shares as per cent, ``[67.71, 68.69]``."""
    return ABSENT if bounds is None else f"[{percent(bounds[0])}, {percent(bounds[1])}]"


def spread(value: Spread) -> str:
    """Write mean, standard deviation and interval in one line; what a single member has not is left out."""
    text = percent(value.mean)
    if value.std is not None:
        text += f" ± {percent(value.std)}"
    return text if value.ci95 is None else f"{text} {interval(value.ci95)}"


def whole(number: float) -> str:
    """Write a count with thin groups of thousands: ``59,551``."""
    return f"{number:,.0f}"


def rate(number: float) -> str:
    """Write a rate: whole from ten on, one decimal below; none for zero, which means not measured."""
    if number <= 0:
        return ABSENT
    return whole(number) if number >= 10 else f"{number:.1f}"


def duration(seconds: float) -> str:
    """Write a duration in its two largest units: ``2 h 05 min``, ``3 min 20 s``, ``4.2 s``."""
    if seconds <= 0:
        return ABSENT
    if seconds < 60:
        return f"{seconds:.1f} s"
    total = round(seconds)
    minutes, rest = divmod(total, 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left:02d} min" if hours else f"{minutes} min {rest:02d} s"


def members(count: int) -> str:
    """Write a number of members."""
    return "1 member" if count == 1 else f"{count} members"
