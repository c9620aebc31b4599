"""A comparison as a tracker shows it: one run for each, found again by the digest of what was compared."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator

from sfora_ray.comparison.records import Comparison, Ends
from sfora_ray.errors import TrackerError
from sfora_ray.reporting.comparison import ComparisonPaths
from sfora_ray.reporting.comparison.sections.result import sentence
from sfora_ray.tracking import DESCRIPTION_TAG, MetricPoint, Tracker, metric_key, without_secrets

_DIGITS = 10


def comparison_digest(comparison: Comparison) -> str:
    """Return ten hexadecimal digits of all that was found; where the packs lie does not count."""
    plain = comparison.model_dump(mode="json")
    for entry in plain["entries"]:
        del entry["source"]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def tell_within_reach(
    comparison: Comparison, paths: ComparisonPaths, tracker: Tracker, *, say: Callable[[str], None]
) -> bool:
    """Tell the tracker, and say so if it is away: the comparison is on disk. Return whether it was told."""
    try:
        tracker.check()
        tell(comparison, paths, tracker, time_ms=time.time_ns() // 1_000_000)
    except TrackerError as error:
        said, folder = without_secrets(str(error)), paths.html.parent
        say(f"warning: {said} The comparison is in {folder}; compare again to tell the tracker.")
        return False
    return True


def tell(comparison: Comparison, paths: ComparisonPaths, tracker: Tracker, *, time_ms: int) -> None:
    """Tell numbers, labels and files; telling again changes nothing.

    Raises:
        TrackerError: the tracker did not take it all.
    """
    names = [entry.label for entry in comparison.entries]
    key = f"compare-{comparison_digest(comparison)}"
    run = tracker.open_run(key, f"compare: {' vs '.join(names)}", parent=None, tags=tags_of(comparison))
    tracker.log_params(run, {"baseline": names[0], "compared_with": ", ".join(names[1:])})
    facts = comparison.baseline.facts
    tracker.log_dataset(run, facts.dataset, facts.dataset_digest, "test")
    tracker.log_metrics(run, list(metric_points(comparison, time_ms)))
    for path in paths.all():
        tracker.log_file(run, path, path.parent.relative_to(paths.html.parent).as_posix().removeprefix("."))
    tracker.close_run(run, "FINISHED")


def tags_of(comparison: Comparison) -> dict[str, str]:
    """Return what is said of the whole comparison; an empty value is not told."""
    packs = (f"{entry.facts.name}-{entry.facts.digest}" for entry in comparison.entries)
    return {
        "sfora.kind": "comparison",
        "sfora.compared": ", ".join(entry.label for entry in comparison.entries),
        "sfora.packs": ", ".join(packs),
        "sfora.selection": ", ".join(dict.fromkeys(entry.facts.selection for entry in comparison.entries)),
        "sfora.labels": "; ".join(comparison.labels),
        "sfora.omitted": "; ".join(comparison.omitted),
        DESCRIPTION_TAG: " ".join(sentence(comparison, other) for other in comparison.others),
    }


def metric_points(comparison: Comparison, time_ms: int) -> Iterator[MetricPoint]:
    """Yield every difference with its interval; where several packs are compared, each one's below its own name.

    ``difference.<metric>`` is of single members over seeds, ``difference.over_queries.<system>.<metric>`` of the
    same queries, ``difference_by_size.<metric>`` has the pack size as its step.
    """
    several = len(comparison.others) > 1
    for test in comparison.seeds:
        key = _below(test.other, f"difference.{test.metric}", several)
        yield from _points(key, test.difference.mean, test.difference.ci95, 0, time_ms, test.p_holm)
    for asked in comparison.queries:
        key = _below(asked.other, f"difference.over_queries.{asked.system}.{asked.metric}", several)
        yield from _points(key, asked.difference, asked.ci95, 0, time_ms, asked.p_holm)
    for point in comparison.sizes:
        key = _below(point.other, f"difference_by_size.{point.metric}", several)
        yield from _points(key, point.difference, point.ci95, point.size, time_ms)


def _below(label: str, name: str, several: bool) -> str:
    return metric_key(f"{label.replace('/', '_')}/{name}" if several else name)


def _points(
    key: str, value: float, ends: Ends | None, step: int, time_ms: int, p_holm: float | None = None
) -> Iterator[MetricPoint]:
    low, high = (None, None) if ends is None else ends
    values = {key: value, f"{key}.ci95_lo": low, f"{key}.ci95_hi": high, f"{key}.p_holm": p_holm}
    for name, number in values.items():
        if number is not None:
            yield MetricPoint(name, number, step, time_ms)
