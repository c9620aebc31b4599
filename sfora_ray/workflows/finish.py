"""What follows training: folds, scores, summary and report; then the tracker is told of all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sfora_ray.data.unreadable import without
from sfora_ray.errors import DataError
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
from sfora_ray.tracking import MlflowOptions, RunStatus, TrackingOptions
from sfora_ray.training.worker import seen_device
from sfora_ray.workflows.patient import PATIENCE_SECONDS, told_patiently

_REASONS: dict[RunStatus, str] = {"FINISHED": "", "FAILED": "no folded pack came out", "KILLED": "interrupted"}


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

    def tell() -> None:
        with mirror.busy:
            tell_everything(run, mirror, run.manifest().config.tracking, status)

    patience = PATIENCE_SECONDS[status] if seconds is None else seconds
    return told_patiently(tell, status, patience, f"sfora-ray mlflow sync {run.path}", say)


def _log_models(run: RunFolder, mirror: Mirror, uri: str, summary: Summary) -> None:
    from sfora_ray.serving.mlflow_models import log_models

    config = run.manifest().config
    parts = ["pack", *(spec.id for spec in run.finished())]
    fold = shipped_fold(summary) or summary.folds[0]
    examples = without(config.data.load(config.cache_dir.expanduser()), run.manifest().left_out).test
    log_models(run, uri, {part: mirror.run_id(part) for part in parts}, fold.name, examples)
