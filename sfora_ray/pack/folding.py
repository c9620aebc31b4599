"""Fit the folds on training classes, apply them to the test classes, and score what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from sfora_ray.config.pack import EvaluationOptions
from sfora_ray.folds import ConcatOptions, FittedFold, FoldOptions, InductiveFold, Moments, TransductiveFold
from sfora_ray.pack.gather import PackBlocks, SplitBlocks
from sfora_ray.pack.summary import SINGLE, FoldFacts
from sfora_ray.retrieval import RetrievalScores, score
from sfora_ray.statistics import cluster_bootstrap

Say = Callable[[str], None]


def silent(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class FoldOutcome:
    """A fitted fold of the whole pack, and how it scored."""

    fitted: FittedFold
    facts: FoldFacts


def fold_pack(
    blocks: PackBlocks,
    moments: Moments,
    folds: Iterable[FoldOptions],
    evaluation: EvaluationOptions,
    device: str,
    say: Say = silent,
) -> list[FoldOutcome]:
    """Fit and score each fold, the concatenation first, for ``retained`` is a share of it.

    Args:
        blocks: what the members made of both splits.
        moments: of the train blocks.
        folds: which folds, each once.
        evaluation: how to score.
        device: where to score.
        say: told what is being done.

    Raises:
        InputError: a fold's options do not fit these members.
    """
    wanted = {fold.canonical_name: fold for fold in (ConcatOptions(), *folds)}
    outcomes: list[FoldOutcome] = []
    for place, (name, options) in enumerate(wanted.items(), start=1):
        say(f"fitting and scoring fold {place} of {len(wanted)}: {name}")
        fitted = _fit(options, blocks, moments)
        scores = _score(fitted.transform(blocks.test.blocks), blocks.test, evaluation, device)
        whole = outcomes[0].facts.metrics["recall_at_1"] if outcomes else scores.recall_at_1
        facts = _facts(name, fitted, scores, blocks, retained=scores.recall_at_1 / whole if whole else 0.0)
        outcomes.append(FoldOutcome(fitted, facts))
    return outcomes


def fold_members(
    blocks: PackBlocks,
    moments: Moments,
    folds: Iterable[FoldOptions],
    evaluation: EvaluationOptions,
    device: str,
    whole: float,
    say: Say = silent,
) -> list[FoldFacts]:
    """Score the folds that also improve one member alone, as means over members: what a pack's fold is up against.

    Args:
        blocks: as for :func:`fold_pack`.
        moments: of the train blocks.
        folds: the pack's folds; only those that change a single member's ranking are looked at.
        evaluation: how to score.
        device: where to score.
        whole: ``recall_at_1`` of the concatenation.
        say: told what is being done.
    """
    say("folding single members for comparison")
    return [
        _member_mean(name, options, blocks, moments, evaluation, device, whole)
        for name, options in {fold.canonical_name: fold for fold in folds}.items()
        if isinstance(options, InductiveFold) and options.improves_single
    ]


def _member_mean(
    name: str,
    options: InductiveFold,
    blocks: PackBlocks,
    moments: Moments,
    evaluation: EvaluationOptions,
    device: str,
    whole: float,
) -> FoldFacts:
    metrics: list[dict[str, float]] = []
    dim = 0
    for place, block in enumerate(blocks.test.blocks):
        fitted = options.fit(moments.members([place]))
        metrics.append(_score(fitted.transform([block]), blocks.test, evaluation, device).metrics())
        dim = fitted.dim
    means = {key: float(np.mean([one[key] for one in metrics])) for key in metrics[0]}
    return FoldFacts(
        name=f"{SINGLE}{name}",
        dim=dim,
        fitted_on="train",
        metrics=means,
        retained=means["recall_at_1"] / whole if whole else 0.0,
        num_members=len(metrics),
    )


def _fit(options: FoldOptions, blocks: PackBlocks, moments: Moments) -> FittedFold:
    if isinstance(options, TransductiveFold):
        return options.fit_rows_transductive(blocks.test.blocks, blocks.test.labels)
    assert isinstance(options, InductiveFold), "a fold is one or the other"
    if options.needs_rows:
        return options.fit_rows(blocks.train.blocks, blocks.train.labels)
    return options.fit(moments)


def _score(
    rows: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
    split: SplitBlocks,
    evaluation: EvaluationOptions,
    device: str,
) -> RetrievalScores:
    return score(
        rows,
        split.labels,
        coarse=split.coarse_labels,
        singletons=evaluation.singletons,
        nmi=evaluation.nmi,
        device=device,
    )


def _facts(name: str, fitted: FittedFold, scores: RetrievalScores, blocks: PackBlocks, *, retained: float) -> FoldFacts:
    first_right = (scores.per_query.best_rank <= 1).astype(float)
    return FoldFacts(
        name=name,
        dim=fitted.dim,
        fitted_on=fitted.fitted_on,
        metrics=scores.metrics(),
        retained=retained,
        ci95=cluster_bootstrap(first_right, blocks.test.labels[scores.per_query.rows], seed=0),
        num_members=len(blocks.members),
    )
