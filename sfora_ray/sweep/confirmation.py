"""Is the best of a sweep really better, or was it the best of many draws?

The seeds of the search favour its winner: it is the winner partly because these very seeds suited it. So the best
configurations and the default are trained as packs with seeds that the search has not used, the same for each, and
compared seed by seed.
"""

from __future__ import annotations

import statistics
from itertools import count, islice
from typing import Any, Literal

from sfora_ray.config.load import build_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.errors import InputError, RunFolderError
from sfora_ray.options import Options
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.sweep.best import candidate_pack
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.ranking import RankedTrial, Ranking, ranking

DEFAULT = "default"
_LEVEL = 0.05


class Candidate(Options):
    """A configuration that is trained as a pack."""

    label: str
    """``default``, or the trial's name."""
    values: dict[str, Any]
    """What it changes in the default."""
    promised: float | None
    """What the sweep measured, on what it selected on; None where it never tried this."""
    promised_std: float | None = None
    promised_members: int = 0


class Confirmation(Options):
    """``confirm/confirm.json``: what is compared, fixed when it begins."""

    format: Literal[1] = 1
    sweep: str
    top: int
    seeds: tuple[int, ...]
    """Of every pack; none of them was used in the search."""
    selection: Literal["validation", "test"]
    metric: str
    candidates: tuple[Candidate, ...]
    """The default first, then the best, the best first."""


def plan_confirmation(sweep: SweepFolder, *, top: int, num_seeds: int) -> Confirmation:
    """Return what is to be trained: the default, and the ``top`` best trials that finished and differ from it.

    Raises:
        InputError: there is nothing to confirm, or too few packs or seeds to compare.
    """
    if top < 1 or num_seeds < 2:
        raise InputError(
            f"{sweep.path}: a comparison needs --top of 1 or more and --seeds of 2 or more, got {top} and {num_seeds}."
        )
    manifest, found = sweep.manifest(), ranking(sweep)
    default, best = _default(manifest.config, found), _best(manifest.config, found)[:top]
    if not best:
        raise RunFolderError(
            f"{sweep.path}: no trial has finished that differs from the default. "
            f"Go on with it: sfora-ray sweep resume {sweep.path}"
        )
    return Confirmation(
        sweep=found.sweep,
        top=top,
        seeds=fresh_seeds(manifest.config.seeds, num_seeds),
        selection=found.selection,
        metric=found.metric,
        candidates=(default, *best),
    )


def fresh_seeds(used: tuple[int, ...], number: int) -> tuple[int, ...]:
    """Return the smallest seeds from 0 on that were not used."""
    return tuple(islice((seed for seed in count() if seed not in used), number))


def confirming_pack(config: SweepConfig, plan: Confirmation, candidate: Candidate, output: str) -> PackConfig:
    """Return the pack of a candidate: the default's own selection, the plan's seeds, its folder below ``output``."""
    pack = candidate_pack(config, candidate.values, candidate.label)
    changes = {"seeds": plan.seeds, "output": output, "min_members": min(pack.min_members, len(plan.seeds))}
    return build_config({**pack.plain(), **changes}, place=f"{plan.sweep}, {candidate.label}")


def _default(config: SweepConfig, found: Ranking) -> Candidate:
    """Return the default, with what the sweep measured of it if it happened to try it."""
    same = [
        one for one in found.trials if one.status == "finished" and _computes(config, one.values) == _computes(config)
    ]
    return _candidate(DEFAULT, {}, same[0]) if same else Candidate(label=DEFAULT, values={}, promised=None)


def _best(config: SweepConfig, found: Ranking) -> list[Candidate]:
    """Return the trials that finished, the best first, each configuration once and the default not at all."""
    known, best = {_computes(config)}, []
    for trial in found.trials:
        if trial.status != "finished" or _computes(config, trial.values) in known:
            continue
        known.add(_computes(config, trial.values))
        best.append(_candidate(trial.name, trial.values, trial))
    return best


def _computes(config: SweepConfig, values: dict[str, Any] | None = None) -> str:
    return config.candidate(values or {}).digest()


def _candidate(label: str, values: dict[str, Any], trial: RankedTrial) -> Candidate:
    return Candidate(
        label=label,
        values=values,
        promised=trial.value,
        promised_std=trial.std,
        promised_members=len(trial.members),
    )


class Verdict(Options):
    """What became of one candidate, beside what the sweep had promised."""

    label: str
    values: dict[str, Any]
    promised: float | None
    """What the sweep measured on what it selected on."""
    promised_std: float | None
    remeasured: float | None
    """The same with fresh seeds; None where the packs hold out no training classes."""
    run: str
    """The pack's run folder."""
    mean: float
    """Of single members, on the test classes."""
    std: float | None
    difference: float | None = None
    """To the default, seed by seed; None for the default itself."""
    ci95: tuple[float, float] | None = None
    p_holm: float | None = None
    """Of sign flips, adjusted for the number of candidates."""
    says: str = ""


class Confirmed(Options):
    """``confirm/result.json``: the answer."""

    format: Literal[1] = 1
    plan: Confirmation
    pack_selection: Literal["validation", "test", "last"]
    """How the packs chose their epochs."""
    verdicts: tuple[Verdict, ...]
    labels: tuple[str, ...]
    """What must stand beside every number."""
    report: str
    """The comparison's page."""


def remeasured(run: RunFolder, plan: Confirmation, judged_by: Literal["best", "last"]) -> float | None:
    """Return a pack's value as the sweep would have judged it, where its members were scored on the same split."""
    by_epoch: dict[int, list[float]] = {}
    finished = run.finished()
    for spec in finished:
        for record in run.member(spec).epochs():
            if plan.metric in record.metrics.get(plan.selection, {}):
                by_epoch.setdefault(record.epoch, []).append(record.metrics[plan.selection][plan.metric])
    means = {epoch: statistics.fmean(values) for epoch, values in by_epoch.items() if len(values) == len(finished)}
    if not means:
        return None
    return means[max(means)] if judged_by == "last" else max(means.values())


def verdict_in_words(
    difference: float, ci95: tuple[float, float] | None, p_holm: float, smallest: float | None, seeds: int
) -> str:
    """Say whether a candidate is really better.

    Args:
        difference: to the default.
        ci95: of the difference, over seeds.
        p_holm: adjusted p-value.
        smallest: the least adjusted p-value that so few seeds can give; None where that is no matter.
        seeds: pairs compared.
    """
    way = "better" if difference > 0 else "worse"
    if p_holm < _LEVEL:
        return f"{way} than the default"
    if ci95 is None or ci95[0] <= 0 <= ci95[1]:
        return "no difference shown"
    if smallest is not None and smallest >= _LEVEL:
        return f"{way} by its interval; {seeds} seeds can give no adjusted p below {smallest:.3g}"
    return f"{way} by its interval alone"
