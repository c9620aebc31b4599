"""``pack run`` and ``pack resume``: from a configuration to a folded, scored, logged and reported pack."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import RunFolderError, SforaError
from sfora_ray.pack.following import following
from sfora_ray.pack.launcher import Launched
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.status import MemberView, member_views
from sfora_ray.pack.summary import Summary
from sfora_ray.tracking import RunStatus
from sfora_ray.training.preflight import MemberPlan, preflight
from sfora_ray.training.preparation import prepare_data
from sfora_ray.workflows.finish import score_pack, tell_everything, write_pack_report
from sfora_ray.workflows.launchers import Launcher

Watch = Callable[[Sequence[MemberView]], None]
Say = Callable[[str], None]

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_BETWEEN_WORDS = 2.0


def run_pack(config: PackConfig, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    """Train a new pack and finish it.

    Raises:
        InputError: something is wrong that could be seen at once; nothing was written.
        SforaError: no member finished.
    """
    say("checking tracker, data and weights")
    tracker = config.tracking.build()
    tracker.check()
    plan = preflight(config)
    prepare_data(config, _now_and_then(say))
    with launcher.ready():
        launcher.refuse_impossible(config)
        run = RunFolder.create(config, plan.weights)
        say(f"run folder {run.path}")
        return run, _train_and_finish(run, Mirror(run, tracker), launcher, watch=watch, say=say)


def run_or_resume(config: PackConfig, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    """Train the pack, or continue it if it has a run folder: what a job does that is submitted again."""
    path = config.output.expanduser() / config.run_name
    if not (path / "manifest.json").exists():
        return run_pack(config, launcher, watch=watch, say=say)
    RunFolder.open(path).adopt(config)
    return resume_pack(path, launcher, watch=watch, say=say)


def resume_pack(path: Path, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    """Continue a pack: members that finished stay, the others go on from their last checkpoint.

    Raises:
        InputError: there is no such pack, or its data or weights are not what they were.
        SforaError: no member finished.
    """
    run = RunFolder.open(path)
    config = run.manifest().config
    tracker = config.tracking.build()
    tracker.check()
    if len(run.finished()) == len(run.specs()):
        # Only folds, report and tracker are left, which need neither GPUs nor Ray.
        return run, _train_and_finish(run, Mirror(run, tracker), Launcher(local=True), watch=watch, say=say)
    _refuse_changes(run, preflight(config))
    with launcher.ready():
        launcher.refuse_impossible(config)
        return run, _train_and_finish(run, Mirror(run, tracker), launcher, watch=watch, say=say)


def _refuse_changes(run: RunFolder, plan: MemberPlan) -> None:
    """Members must start from the same weights and see the same rows as those that have finished."""
    weights, digest = run.manifest().weights, run.dataset_digest()
    if plan.weights != weights:
        raise RunFolderError(
            f"{run.path}: its members started from weights '{weights}', got '{plan.weights}'. "
            "Put the old file back, or run a new pack."
        )
    if digest and plan.dataset_digest != digest:
        raise RunFolderError(
            f"{run.path}: its members saw data with digest {digest}, got {plan.dataset_digest}. "
            "Put the old images back, or run a new pack."
        )


def _train_and_finish(run: RunFolder, mirror: Mirror, launcher: Launcher, *, watch: Watch, say: Say) -> Summary:
    """Train, then score, summarise and report. The tracker hears of it last and can spoil none of it."""
    mirror.open()
    status: RunStatus = "FAILED"
    try:
        with following(mirror):
            members = _train(run, launcher, watch)
        finished = run.finished()
        if not finished:
            raise SforaError(f"no member finished: {_reasons(run)}")
        say("gathering embeddings")
        blocks = members.gather(finished)
        summary = score_pack(run, blocks, members.moments(blocks), run.manifest().config.folds, say=say)
        say("writing the report")
        write_pack_report(run)
        status = "FINISHED"
        return summary
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        _tell(run, mirror, status, say)


def _tell(run: RunFolder, mirror: Mirror, status: RunStatus, say: Say) -> None:
    if status == "FINISHED":
        say("logging metrics, models and the report")
    try:
        tell_everything(run, mirror, run.manifest().config.tracking, status)
    except Exception as error:  # the pack is done and on disk: no fault of a tracker may hide that
        say(f"the tracker missed something: {error} When it is back: sfora-ray mlflow sync {run.path}")
        with contextlib.suppress(Exception):
            mirror.close(status)


def _train(run: RunFolder, launcher: Launcher, watch: Watch) -> Launched:
    """Train every member that has not finished, showing them as they go."""
    done = {spec.id for spec in run.finished()}
    specs = [spec for spec in run.specs() if spec.id not in done]
    _forget_failures(run, specs)
    members = launcher.launch(run, specs)
    try:
        while True:
            states = members.poll()
            watch(member_views(run, states))
            if all(state in ("finished", "failed") for state in states.values()):
                return members
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    except BaseException:
        members.stop()
        raise


def _forget_failures(run: RunFolder, specs: Sequence[MemberSpec]) -> None:
    for spec in specs:
        run.member(spec).result_path.unlink(missing_ok=True)
        run.member(spec).progress_path.unlink(missing_ok=True)


def _now_and_then(say: Say) -> Callable[[int, int], None]:
    """Return what says how far decoding is, at most every other second."""
    last = time.monotonic()

    def decoded(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > _SECONDS_BETWEEN_WORDS:
            last = time.monotonic()
            say(f"decoding images: {done} of {total}")

    return decoded


def _reasons(run: RunFolder) -> str:
    reasons = [f"{result.id} (seed {result.seed}): {result.reason}" for result in run.results().values()]
    return "; ".join(reasons) or "none left a result"
