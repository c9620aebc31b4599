"""``pack run`` and ``pack resume``: from a configuration to a folded, scored, logged and reported pack."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sfora_ray.config.pack import PackConfig
from sfora_ray.data.unreadable import names_of
from sfora_ray.errors import InputError, RunFolderError, TrackerError
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.run_folder import Manifest, RunFolder, with_extent
from sfora_ray.pack.summary import Summary
from sfora_ray.tracking import Tracker
from sfora_ray.training.preflight import preflight
from sfora_ray.training.preparation import prepare_data
from sfora_ray.workflows.homes import new_run, written_run
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.train_pack import Say, Watch, train_and_finish

_SECONDS_BETWEEN_WORDS = 2.0


def run_pack(config: PackConfig, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    """Train a new pack and finish it.

    Raises:
        InputError: something is wrong that could be seen at once; nothing was written.
        SforaError: too few members finished.
    """
    with new_run(config) as run:
        return _run_new(run, config, launcher, watch=watch, say=say)


def _run_new(
    run: RunFolder, config: PackConfig, launcher: Launcher, *, watch: Watch, say: Say
) -> tuple[RunFolder, Summary]:
    run.refuse_taken()
    _tell_of_extension(config, say)
    say("checking tracker, data and weights")
    tracker = config.tracking.build()
    tracker.check()
    plan = preflight(config)
    left_out = prepare_data(config, now_and_then(say)).left_out
    if left_out:
        say(f"warning: {len(left_out)} image(s) cannot be read and are left out: {names_of(left_out)}")
        plan = preflight(config, left_out)
    with launcher.ready():
        launcher.refuse_impossible(config)
        launcher.refuse_unshared(config, run.path.parent)
        with run_lock(run.path):
            RunFolder.create(config, plan.weights, plan.dataset_digest, run.home, left_out)
            say(f"run folder {run.path}")
            return run, train_and_finish(run, tracker, launcher, watch=watch, say=say)


def run_or_resume(config: PackConfig, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    """Train the pack, or continue it if it has a run folder: what a job does that is submitted again."""
    with new_run(config) as run:
        if not run.manifest_path.exists():
            return _run_new(run, config, launcher, watch=watch, say=say)
        RunFolder.open(run.path)
        with run_lock(run.path):
            run.adopt(config)
            return _go_on(run, launcher, watch=watch, say=say)


def resume_pack(place: Path | str, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    """Continue a pack: members that finished stay, the others go on from their last checkpoint.

    Raises:
        InputError: there is no such pack, another process writes it, or its data or weights are not what they were.
        SforaError: too few members finished.
    """
    with written_run(place) as run, run_lock(run.path):
        return _go_on(run, launcher, watch=watch, say=say)


def _go_on(run: RunFolder, launcher: Launcher, *, watch: Watch, say: Say) -> tuple[RunFolder, Summary]:
    config = run.manifest().config
    tracker = patient_tracker(config, say)
    run.renew_specs()
    if len(run.finished()) == len(run.specs()):
        # Only folds, report and tracker are left, which need neither GPUs nor Ray.
        return run, train_and_finish(run, tracker, Launcher(local=True), watch=watch, say=say)
    refuse_changes(run, config)
    with launcher.ready():
        launcher.refuse_impossible(config)
        launcher.refuse_unshared(config, run.path.parent)
        return run, train_and_finish(run, tracker, launcher, watch=watch, say=say)


def patient_tracker(config: PackConfig, say: Say) -> Tracker:
    """Return the tracker of a pack that has begun; one that does not answer is waited for while members train."""
    tracker = config.tracking.build()
    try:
        tracker.check()
    except TrackerError as error:
        say(f"warning: {error} The pack goes on; the tracker is told when it answers.")
    return tracker


def refuse_changes(run: RunFolder, config: PackConfig) -> None:
    """Prove that members of ``config`` start from the same weights and see the same rows as the pack's others.

    Raises:
        InputError: they do not, or weights or data cannot be read.
    """
    plan = preflight(config, run.manifest().left_out)
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


def _tell_of_extension(config: PackConfig, say: Say) -> None:
    """Say if a pack is there already that differs in nothing but fewer seeds or epochs."""
    for path in sorted(config.output_folder.glob(f"{config.name}-*/manifest.json")):
        with suppress(InputError):  # another pack's damaged folder is no matter of this one
            options = _what_it_lacks(RunFolder.open(path.parent).manifest(), config)
            if options:
                say(
                    f"note: {path.parent} differs in seeds and epochs only; "
                    f"`sfora-ray pack extend {path.parent}{options}` would train only what is missing"
                )
                return


def _what_it_lacks(manifest: Manifest, config: PackConfig) -> str:
    """Return the options that would extend a pack to ``config``; empty if none would."""
    first, now = manifest.original_config(), manifest.config
    if with_extent(config, first.seeds, first.training.epochs).digest() != manifest.digest:
        return ""
    more_epochs = config.training.epochs - now.training.epochs
    if not set(now.seeds) <= set(config.seeds) or more_epochs < 0 or (more_epochs and now.schedule.name == "cosine"):
        return ""
    new = ",".join(str(seed) for seed in config.seeds if seed not in now.seeds)
    return (f" --seeds {new}" if new else "") + (f" --epochs {config.training.epochs}" if more_epochs else "")


def now_and_then(say: Say) -> Callable[[int, int], None]:
    """Return what says how far decoding is, at most every other second."""
    last = time.monotonic()

    def decoded(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > _SECONDS_BETWEEN_WORDS:
            last = time.monotonic()
            say(f"decoding images: {done} of {total}")

    return decoded
