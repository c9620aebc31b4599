"""What follows training: folds, scores, summary, report, models, and the tracker told of all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sfora_ray.folds import FoldOptions, Moments
from sfora_ray.pack.curve import size_curve
from sfora_ray.pack.folding import fold_members, fold_pack
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summarize import summarize
from sfora_ray.pack.summary import Summary, shipped_fold
from sfora_ray.reporting import ReportPaths, write_report
from sfora_ray.tracking import MlflowOptions, TrackingOptions
from sfora_ray.training.worker import seen_device

Say = Callable[[str], None]


def finish_pack(run: RunFolder, blocks: PackBlocks, moments: Moments, mirror: Mirror, *, say: Say) -> Summary:
    """Fold, score, summarise, report and log a trained pack."""
    summary = score_pack(run, blocks, moments, run.manifest().config.folds)
    say("writing the report")
    write_pack_report(run)
    say("logging models, figures and the report")
    tell_pack(run, mirror, summary, run.manifest().config.tracking)
    return summary


def score_pack(run: RunFolder, blocks: PackBlocks, moments: Moments, folds: Iterable[FoldOptions]) -> Summary:
    """Fit and save the folds, score them and every pack size, and write the summary."""
    evaluation = run.manifest().config.evaluation
    device = str(seen_device())
    wanted = tuple(folds)
    outcomes = fold_pack(blocks, moments, wanted, evaluation, device)
    whole = outcomes[0].facts.metrics["recall_at_1"]
    members = fold_members(blocks, moments, wanted, evaluation, device, whole)
    run.write_folds(outcomes)
    curve = size_curve(blocks.test, evaluation, device)
    facts = [*(outcome.facts for outcome in outcomes), *members]
    summary = summarize(run, blocks, run.dataset_digest(), curve, facts)
    run.write_summary(summary)
    return summary


def write_pack_report(run: RunFolder) -> ReportPaths:
    """Write the report from the run folder alone."""
    return write_report(run, cache_dir=run.manifest().config.cache_dir.expanduser())


def tell_pack(run: RunFolder, mirror: Mirror, summary: Summary, tracking: TrackingOptions) -> None:
    """Tell the tracker what the pack came to, with its files, its members as models and the pack as one."""
    mirror.tell_summary(summary, time_ms=int(time.time() * 1000))
    mirror.tell_files()
    config = run.manifest().config
    if not isinstance(tracking, MlflowOptions):
        return
    from sfora_ray.serving.mlflow_models import log_models

    parts = ["pack", *(spec.id for spec in run.finished())]
    examples = config.data.load(config.cache_dir.expanduser()).test
    log_models(
        run,
        tracking.uri,
        {part: mirror.run_id(part) for part in parts},
        (shipped_fold(summary) or summary.folds[0]).name,
        examples,
    )
