"""From members, curve and folds to the one record that everybody reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfora_ray.arrays import Int64
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.run_folder import Manifest, RunFolder
from sfora_ray.pack.summary import CurvePoint, FoldFacts, MemberFacts, PackFacts, Spread, Summary, recipe_in_words
from sfora_ray.statistics import t_interval


def summarize(
    run: RunFolder,
    blocks: PackBlocks,
    dataset_digest: str,
    curve: Sequence[CurvePoint],
    folds: Sequence[FoldFacts],
) -> Summary:
    """Put the summary of a pack together."""
    manifest, results = run.manifest(), run.results()
    finished = [results[spec.id] for spec in blocks.members]
    return Summary(
        pack=_pack(run, blocks, dataset_digest, finished),
        members=tuple(_member(manifest, spec, results.get(spec.id)) for spec in run.specs()),
        single={key: _spread([result.metrics[key] for result in finished]) for key in finished[0].metrics},
        pack_curve=tuple(curve),
        folds=tuple(folds),
    )


def _pack(run: RunFolder, blocks: PackBlocks, dataset_digest: str, finished: Sequence[MemberResult]) -> PackFacts:
    manifest = run.manifest()
    config = manifest.config
    num_singletons = _num_singletons(blocks.test.labels)
    left_out = num_singletons if config.evaluation.singletons == "skip" else 0
    return PackFacts(
        name=manifest.name,
        digest=manifest.digest,
        dataset=config.data.name,
        dataset_digest=dataset_digest,
        objective=config.loss.name,
        recipe=recipe_in_words(config.recipe),
        backbone=config.model.backbone.name,
        weights=manifest.weights,
        dim=config.model.dim,
        num_members=len(finished),
        num_planned=len(config.seeds),
        selection=config.selection.split,
        selection_metric=config.selection.metric,
        epochs=config.training.epochs,
        train_classes=len(np.unique(blocks.train.labels)),
        train_images=len(blocks.train.labels),
        test_classes=len(np.unique(blocks.test.labels)),
        test_images=len(blocks.test.labels),
        num_queries=len(blocks.test.labels) - left_out,
        num_singletons=num_singletons,
        notes=_notes(run, finished),
        versions=manifest.versions,
    )


def _notes(run: RunFolder, finished: Sequence[MemberResult]) -> tuple[str, ...]:
    planned = len(run.manifest().config.seeds)
    missing = planned - len(finished)
    partial = [f"{missing} of {planned} members did not finish and are in no number here"] if missing else []
    return (*partial, *dict.fromkeys(note for result in finished for note in result.notes))


def _member(manifest: Manifest, spec: MemberSpec, result: MemberResult | None) -> MemberFacts:
    if result is None or (result.status == "finished" and not manifest.is_finished(result)):
        return MemberFacts(id=spec.id, seed=spec.seed, status="absent")
    return MemberFacts(
        id=spec.id,
        seed=spec.seed,
        status=result.status,
        cause=result.cause,
        reason=result.reason,
        restarts=result.restarts,
        best_epoch=result.best_epoch,
        metrics=result.metrics,
        train_seconds=result.train_seconds,
        images_per_second=result.images_per_second,
        warnings=result.warnings,
    )


def _spread(values: Sequence[float]) -> Spread:
    interval = t_interval(values)
    return Spread(mean=interval.mean, std=interval.std, n=interval.n, ci95=interval.ci95)


def _num_singletons(labels: Int64) -> int:
    _, counts = np.unique(labels, return_counts=True)
    return int((counts == 1).sum())
