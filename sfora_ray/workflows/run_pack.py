"""``pack run`` and ``pack resume``: from a configuration to a folded, scored, logged and reported pack."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import SforaError
from sfora_ray.pack.following import following
from sfora_ray.pack.launcher import Launched
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.status import MemberView, member_views
from sfora_ray.pack.summary import Summary
from sfora_ray.tracking import RunStatus
from sfora_ray.training.preflight import preflight
from sfora_ray.workflows.finish import finish_pack
from sfora_ray.workflows.launchers import Launcher

Watch = Callable[[Sequence[MemberView]], None]
Say = Callable[[str], None]

_SECONDS_BETWEEN_LOOKS = 0.5


def run_pack(config: PackConfig, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    """Train a new pack and finish it.

    Raises:
        InputError: something is wrong that could be seen at once; nothing was written.
        SforaError: no member finished.
    """
    say("checking data, weights and tracker")
    tracker = config.tracking.build()
    tracker.check()
    plan = preflight(config)
    with launcher.ready():
        launcher.refuse_impossible(config)
        run = RunFolder.create(config, plan.weights)
        say(f"run folder {run.path}")
        return run, _train_and_finish(run, Mirror(run, tracker), launcher, watch=watch, say=say)


def run_or_resume(config: PackConfig, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    """Train the pack, or continue it if it has a run folder: what a job does that is submitted again."""
    path = config.output.expanduser() / config.run_name
    if (path / "manifest.json").exists():
        return resume_pack(path, launcher, watch=watch, say=say)
    return run_pack(config, launcher, watch=watch, say=say)


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
    preflight(config)
    with launcher.ready():
        launcher.refuse_impossible(config)
        return run, _train_and_finish(run, Mirror(run, tracker), launcher, watch=watch, say=say)


def _train_and_finish(run: RunFolder, mirror: Mirror, launcher: Launcher, *, watch: Watch, say: Say) -> Summary:
    mirror.open()
    status: RunStatus = "FAILED"
    try:
        with following(mirror):
            members = _train(run, launcher, watch)
        mirror.follow()
        mirror.tell_members()
        finished = run.finished()
        if not finished:
            raise SforaError(f"no member finished: {_reasons(run)}")
        say("gathering embeddings, fitting folds, scoring")
        blocks = members.gather(finished)
        summary = finish_pack(run, blocks, members.moments(blocks), mirror, say=say)
        status = "FINISHED"
        return summary
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
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


def _reasons(run: RunFolder) -> str:
    reasons = [f"{result.id} (seed {result.seed}): {result.reason}" for result in run.results().values()]
    return "; ".join(reasons) or "none left a result"
