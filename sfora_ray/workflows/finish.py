"""What follows training: folds, scores, summary and report; then the tracker is told of all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from sfora_ray.data.unreadable import without
from sfora_ray.errors import DataError, TrackerError
from sfora_ray.folds import FoldOptions, Moments
from sfora_ray.pack.curve import size_curve
from sfora_ray.pack.ending import summary_fits
from sfora_ray.pack.folding import fold_members, fold_pack
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summarize import summarize
from sfora_ray.pack.summary import Summary, shipped_fold
from sfora_ray.reporting import ReportPaths, write_report
from sfora_ray.tracking import MlflowOptions, RunStatus, TrackingOptions, without_secrets
from sfora_ray.training.worker import seen_device

_REASONS: dict[RunStatus, str] = {"FINISHED": "", "FAILED": "no folded pack came out", "KILLED": "interrupted"}
_PATIENCE_SECONDS: dict[RunStatus, float] = {"FINISHED": 60.0, "FAILED": 60.0, "KILLED": 8.0}
_SECONDS_BETWEEN_TRIES = 2.0


def score_pack(
    run: RunFolder, blocks: PackBlocks, moments: Moments, folds: Iterable[FoldOptions], *, say: Callable[[str], None]
) -> Summary:
    """Fit and save the folds, score them and every pack size, and write the summary."""
    evaluation = run.manifest().config.evaluation
    device = str(seen_device()) if run.manifest().config.resources.gpus_per_worker else "cpu"
    wanted = tuple(folds)
    outcomes = fold_pack(blocks, moments, wanted, evaluation, device, say)
    whole = outcomes[0].facts.metrics["recall_at_1"]
    members = fold_members(blocks, moments, wanted, evaluation, device, whole, say)
    run.write_folds(outcomes)
    say("scoring packs of every size")
    curve = size_curve(blocks.test, evaluation, device)
    facts = [*(outcome.facts for outcome in outcomes), *members]
    summary = summarize(run, blocks, run.dataset_digest(), curve, facts)
    run.write_summary(summary)
    return summary


def write_pack_report(run: RunFolder) -> ReportPaths:
    """Write the report from the run folder alone."""
    return write_report(run, cache_dir=run.manifest().config.cache_dir.expanduser())


def tell_everything(run: RunFolder, mirror: Mirror, tracking: TrackingOptions, status: RunStatus | None) -> None:
    """Tell the tracker all that the run folder says and end its runs; telling again changes nothing.

    Args:
        run: the pack.
        mirror: of this pack; ``mirror.busy`` is held by the caller where another thread uses it too.
        tracking: where the models go.
        status: how the pack ended; None while another process writes it: then only members that have ended are closed.

    Raises:
        TrackerError: the tracker did not take it all.
        DataError: the images that models are logged with are not here; all else is told and the runs are ended.
    """
    absent: DataError | None = None
    mirror.check()
    mirror.open()
    mirror.follow()
    mirror.tell_members()
    if status in (None, "FINISHED") and summary_fits(run):
        summary = run.summary()
        mirror.tell_summary(summary, time_ms=int(run.summary_path.stat().st_mtime * 1000))
        mirror.tell_files()
        try:
            if isinstance(tracking, MlflowOptions):
                _log_models(run, mirror, tracking.uri, summary)
        except DataError as error:
            absent = error
    if status is not None:
        mirror.close(status, _REASONS[status])
    if absent is not None:
        raise absent


def tell_within(
    run: RunFolder, mirror: Mirror, status: RunStatus, *, say: Callable[[str], None], seconds: float | None = None
) -> bool:
    """Tell everything, waiting for an absent tracker ``seconds`` at most; return whether it was told.

    A pack is done when this is called and on disk, so no fault of a tracker is raised. An interrupted pack waits for
    8 seconds, another for 60: what it cannot tell then, ``sfora-ray mlflow sync`` tells later.
    """
    patience = _PATIENCE_SECONDS[status] if seconds is None else seconds
    faults: list[str] = []
    telling = threading.Thread(target=_keep_telling, args=(run, mirror, status, patience, faults), daemon=True)
    telling.start()
    if status == "KILLED":
        telling.join(patience)
    else:
        _join_aloud(telling, faults, patience, say)
    if telling.is_alive() or faults:
        fault = faults[-1] if faults else f"it gave no answer within {patience:.0f} s."
        say(f"the tracker missed something: {fault} When it is back: sfora-ray mlflow sync {run.path}")
        return False
    return True


def _keep_telling(run: RunFolder, mirror: Mirror, status: RunStatus, patience: float, faults: list[str]) -> None:
    """Try again until all is told or the tracker has been away for so long; leave the last fault, if any stays."""
    end: float | None = None
    while True:
        try:
            with mirror.busy:
                tell_everything(run, mirror, run.manifest().config.tracking, status)
        except Exception as error:
            end = time.monotonic() + patience if end is None else end
            faults.append(without_secrets(str(error)))
            if time.monotonic() + _SECONDS_BETWEEN_TRIES >= end or not isinstance(error, TrackerError):
                return
            time.sleep(_SECONDS_BETWEEN_TRIES)
        else:
            faults.clear()
            return


def _join_aloud(telling: threading.Thread, faults: list[str], patience: float, say: Callable[[str], None]) -> None:
    """Wait until the thread ends, and say once that the tracker is away."""
    while telling.is_alive() and not faults:
        telling.join(0.1)
    if telling.is_alive():
        say(f"waiting up to {patience:.0f} s for the tracker: {faults[0]}")
    telling.join()


def _log_models(run: RunFolder, mirror: Mirror, uri: str, summary: Summary) -> None:
    from sfora_ray.serving.mlflow_models import log_models

    config = run.manifest().config
    parts = ["pack", *(spec.id for spec in run.finished())]
    fold = shipped_fold(summary) or summary.folds[0]
    examples = without(config.data.load(config.cache_dir.expanduser()), run.manifest().left_out).test
    log_models(run, uri, {part: mirror.run_id(part) for part in parts}, fold.name, examples)
