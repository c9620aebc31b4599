"""``compare``: packs side by side, which differences are real, written as a report and told to the tracker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfora_ray.comparison import Comparison, Source, compare
from sfora_ray.errors import InputError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.reporting.comparison import ComparisonPaths, write_comparison
from sfora_ray.tracking import MlflowOptions, Tracker
from sfora_ray.training.worker import seen_device
from sfora_ray.workflows.compared import find_pack, is_tracked
from sfora_ray.workflows.sync import tracking_at
from sfora_ray.workflows.tell_comparison import comparison_digest, tell_within_reach

Say = Callable[[str], None]

FOLDER = "compare"


@dataclass(frozen=True)
class ComparisonOutcome:
    """A comparison and where it is.

    Attributes:
        comparison: the record.
        paths: of the report and the record.
        told: whether the tracker took it.
    """

    comparison: Comparison
    paths: ComparisonPaths
    told: bool


def compare_runs(places: Sequence[str], *, output: Path | None, tracking: str | None, say: Say) -> ComparisonOutcome:
    """Compare the first pack with each of the others.

    Args:
        places: run folders, addresses in a store, MLflow run ids, configs of packs that were run.
        output: folder of the report; below the first pack's output folder if None.
        tracking: where run ids are looked up and the comparison is told; None: MLflow's default for ids, and the first
            pack's own tracker.
        say: is told what is done.

    Raises:
        InputError: a pack is not there or has no summary, or the packs cannot be compared; nothing was written.
    """
    _refuse_few(places)
    say("reading packs")
    looked_up_at = tracking or MlflowOptions().uri
    packs = [find_pack(place, looked_up_at) for place in places]
    uri = looked_up_at if tracking or any(is_tracked(place) for place in places) else None
    return _compared(packs, None, output, _tracker_of(packs[0], uri), say)


def compare_folders(
    runs: Sequence[RunFolder], labels: Sequence[str] | None, output: Path | None, tracker: Tracker, say: Say
) -> ComparisonOutcome:
    """Compare the first run folder with each of the others, under ``labels`` if there are any.

    Raises:
        InputError: as for :func:`compare_runs`.
    """
    _refuse_few([str(run.path) for run in runs])
    return _compared([Source.of_folder(run) for run in runs], labels, output, tracker, say)


def _tracker_of(first: Source, uri: str | None) -> Tracker:
    """Return the tracker of the baseline, in its own experiment, at another address if one is given."""
    options = first.manifest.config.tracking
    return (options if uri is None else tracking_at(options, uri)).build()


def _compared(
    packs: Sequence[Source], labels: Sequence[str] | None, output: Path | None, tracker: Tracker, say: Say
) -> ComparisonOutcome:
    _refuse_repeated(packs)
    comparison = compare(packs, labels, device=_device(packs[0]), say=say)
    folder = output or _default_output(packs[0]) / comparison_digest(comparison)
    say("writing the report")
    paths = write_comparison(comparison, folder)
    told = tell_within_reach(comparison, paths, tracker, say=say)
    return ComparisonOutcome(comparison, paths, told)


def _device(first: Source) -> str:
    """Return where queries are scored: where the baseline's members were trained."""
    return str(seen_device()) if first.manifest.config.resources.gpus_per_worker else "cpu"


def _default_output(first: Source) -> Path:
    return (first.folder.path.parent if first.folder is not None else Path("runs")) / FOLDER


def _refuse_few(places: Sequence[str]) -> None:
    if len(places) < 2:
        raise InputError(f"compare: needs at least two packs, got {len(places)}. Name the baseline first, then others.")


def _refuse_repeated(packs: Sequence[Source]) -> None:
    sources = [pack.source for pack in packs]
    for source in sources:
        if sources.count(source) > 1:
            raise InputError(f"compare: every pack may stand once, got {source} twice. Leave one out.")
