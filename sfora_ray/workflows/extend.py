"""``pack extend``: more seeds or more epochs for a pack that has begun, without training anything twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfora_ray.config.load import build_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import ConfigError
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.run_folder import RunFolder, with_extent
from sfora_ray.pack.summary import Summary
from sfora_ray.workflows.homes import written_run
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import patient_tracker, refuse_changes
from sfora_ray.workflows.train_pack import Say, Watch, train_and_finish


def extend_pack(
    place: Path | str, launcher: Launcher, *, seeds: Sequence[int], epochs: int | None, watch: Watch, say: Say
) -> tuple[RunFolder, Summary]:
    """Train a pack's members of ``seeds``, and all members up to ``epochs``; then renew folds, curve and report.

    The result is that of a pack that was run so from the beginning, to the last bit.

    Raises:
        InputError: the pack cannot be extended so, or another process writes it; nothing was changed.
        SforaError: too few members finished.
    """
    with written_run(place) as run:
        return _extend(run, launcher, seeds=seeds, epochs=epochs, watch=watch, say=say)


def _extend(
    run: RunFolder, launcher: Launcher, *, seeds: Sequence[int], epochs: int | None, watch: Watch, say: Say
) -> tuple[RunFolder, Summary]:
    _extended(run, seeds, epochs)  # before waiting for the lock
    with run_lock(run.path):
        config = _extended(run, seeds, epochs)
        tracker = patient_tracker(config, say)
        refuse_changes(run, config)
        with launcher.ready():
            launcher.refuse_impossible(config)
            launcher.refuse_unshared(config, run.path.parent)
            run.extend(config)
            return run, train_and_finish(run, tracker, launcher, watch=watch, say=say)


def _extended(run: RunFolder, seeds: Sequence[int], epochs: int | None) -> PackConfig:
    """Return the longer configuration, checked as any other."""
    now = run.manifest().config
    _refuse_seeds(run, now, seeds)
    _refuse_epochs(run, now, epochs)
    if not seeds and epochs is None:
        raise ConfigError(f"{run.path}: nothing to extend it by. Give --seeds 5,6,7 or --epochs 80, or both.")
    longer = with_extent(now, (*now.seeds, *seeds), epochs or now.training.epochs)
    return build_config(longer.plain(), place=f"{run.path}, extended")


def _refuse_seeds(run: RunFolder, now: PackConfig, seeds: Sequence[int]) -> None:
    there = [seed for seed in seeds if seed in now.seeds]
    if there:
        raise ConfigError(
            f"{run.path}: --seeds: the pack has these members already, got {', '.join(map(str, there))}. "
            f"Give other seeds; to go on with what has begun: sfora-ray pack resume {run.path}"
        )


def _refuse_epochs(run: RunFolder, now: PackConfig, epochs: int | None) -> None:
    if epochs is None:
        return
    if epochs <= now.training.epochs:
        raise ConfigError(
            f"{run.path}: --epochs: must be above the {now.training.epochs} that the pack has, got {epochs}. "
            f"To go on with what has begun: sfora-ray pack resume {run.path}"
        )
    if now.schedule.name == "cosine":
        raise ConfigError(
            f"{run.path}: --epochs: rates of a cosine schedule depend on the number of epochs, so that members would "
            f"not become those of {epochs} epochs from the start. Run a new pack."
        )
