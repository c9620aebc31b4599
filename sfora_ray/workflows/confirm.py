"""``sweep confirm``: the best configurations and the default as packs with fresh, paired seeds, compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfora_ray.comparison.records import SeedTest
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.errors import BusyError, RunFolderError
from sfora_ray.files import write_json
from sfora_ray.pack.lock import lock_holder, run_lock
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.sweep.confirmation import (
    Candidate,
    Confirmation,
    Confirmed,
    Verdict,
    confirming_pack,
    plan_confirmation,
    remeasured,
    verdict_in_words,
)
from sfora_ray.sweep.ending import is_complete
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.training.records import read_record
from sfora_ray.workflows.compare import ComparisonOutcome, compare_folders
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import run_or_resume
from sfora_ray.workflows.train_pack import Say, Watch

PLAN, RESULT, COMPARISON = "confirm.json", "result.json", "compare"


def confirm_sweep(
    place: Path | str, launcher: Launcher, *, top: int, num_seeds: int, watch: Watch, say: Say
) -> tuple[SweepFolder, Confirmed]:
    """Train the packs that are not trained yet, then compare each with the default; called again it goes on.

    Args:
        place: the sweep folder.
        launcher: where members run.
        top: how many of the best configurations are confirmed.
        num_seeds: members of each pack.
        watch: shown each pack's members.
        say: told what is being done.

    Raises:
        InputError: there is nothing to confirm, another confirmation was begun, or somebody writes the sweep.
        SforaError: too few members of a pack finished.
    """
    sweep = SweepFolder.open(Path(place))
    if sweep.is_written():
        raise BusyError(
            f"{sweep.path}: the sweep is under way, got {lock_holder(sweep.path) or 'a lock'}. Confirm it when it ends."
        )
    if not is_complete(sweep):
        say(f"note: the sweep is not complete; this is the best so far. sfora-ray sweep resume {sweep.path}")
    with run_lock(sweep.confirm_path):
        plan = _plan(sweep, top, num_seeds, say)
        runs = [_trained(sweep, plan, candidate, launcher, watch=watch, say=say) for candidate in plan.candidates]
        labels = [candidate.label for candidate in plan.candidates]
        tracker = sweep.config().pack.tracking.build()
        compared = compare_folders(runs, labels, sweep.confirm_path / COMPARISON, tracker, say)
        result = _confirmed(sweep.config(), plan, runs, compared)
        write_json(sweep.confirm_path / RESULT, result.model_dump(mode="json"))
        return sweep, result


def _plan(sweep: SweepFolder, top: int, num_seeds: int, say: Say) -> Confirmation:
    """Return the plan that was begun, or begin one."""
    path, wanted = sweep.confirm_path / PLAN, plan_confirmation(sweep, top=top, num_seeds=num_seeds)
    if not path.is_file():
        write_json(path, wanted.model_dump(mode="json"))
        return wanted
    begun = read_record(Confirmation, path)
    if (begun.top, len(begun.seeds)) != (top, num_seeds):
        raise RunFolderError(
            f"{path}: a confirmation of the best {begun.top} with {len(begun.seeds)} seeds was begun, got --top {top} "
            f"--seeds {num_seeds}. Give what was begun, or remove {sweep.confirm_path} to confirm anew."
        )
    if begun.candidates != wanted.candidates:
        say(f"note: the sweep's best are others by now; remove {sweep.confirm_path} to confirm those")
    return begun


def _trained(
    sweep: SweepFolder, plan: Confirmation, candidate: Candidate, launcher: Launcher, *, watch: Watch, say: Say
) -> RunFolder:
    config = confirming_pack(sweep.config(), plan, candidate, str(sweep.confirm_path))
    if (done := _done(RunFolder.of(config))) is not None:
        return done
    place = plan.candidates.index(candidate) + 1
    say(f"pack {place} of {len(plan.candidates)}: {config.name}, seeds {', '.join(map(str, plan.seeds))}")
    return run_or_resume(config, launcher, watch=watch, say=say)[0]


def _done(run: RunFolder) -> RunFolder | None:
    """Return the pack if it needs no more work."""
    if not run.manifest_path.is_file() or not run.summary_path.is_file():
        return None
    return run if len(run.finished()) == len(run.specs()) else None


def _confirmed(
    config: SweepConfig, plan: Confirmation, runs: Sequence[RunFolder], compared: ComparisonOutcome
) -> Confirmed:
    comparison = compared.comparison
    tests = {test.other: test for test in comparison.seeds if test.metric == plan.metric}
    verdicts = [
        _verdict(config, plan, candidate, run, tests.get(entry.label), len(comparison.others))
        for candidate, run, entry in zip(plan.candidates, runs, comparison.entries, strict=True)
    ]
    return Confirmed(
        plan=plan,
        pack_selection=config.pack.selection.split,
        verdicts=tuple(verdicts),
        labels=comparison.labels,
        report=str(compared.paths.html),
    )


def _verdict(
    config: SweepConfig,
    plan: Confirmation,
    candidate: Candidate,
    run: RunFolder,
    test: SeedTest | None,
    num_tests: int,
) -> Verdict:
    spread = run.summary().single[plan.metric]
    known = Verdict(
        label=candidate.label,
        values=candidate.values,
        promised=candidate.promised,
        promised_std=candidate.promised_std,
        remeasured=remeasured(run, plan, config.selection.epoch),
        run=str(run.path),
        mean=spread.mean,
        std=spread.std,
    )
    return known if test is None else known.model_copy(update=_of_test(test, num_tests))


def _of_test(test: SeedTest, num_tests: int) -> dict[str, object]:
    difference = test.difference
    smallest = None if test.p_smallest is None else min(1.0, test.p_smallest * num_tests)
    says = verdict_in_words(difference.mean, difference.ci95, test.p_holm, smallest, difference.n)
    return {"difference": difference.mean, "ci95": difference.ci95, "p_holm": test.p_holm, "says": says}
