"""``ablation``: two packs that differ in their method alone, trained with the same seeds and compared at every size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import ConfigError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.preflight import preflight
from sfora_ray.workflows.compare import ComparisonOutcome, compare_folders
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import run_or_resume
from sfora_ray.workflows.train_pack import Say, Watch


def ablate(
    first: PackConfig, second: PackConfig, launcher: Launcher, *, output: Path | None, watch: Watch, say: Say
) -> ComparisonOutcome:
    """Train both packs, or go on with them, or find them finished; then compare the second with the first.

    Raises:
        InputError: the packs have other seeds, other data or another width, or are the same; nothing was trained.
        SforaError: too few members finished.
    """
    say("checking that seeds and data agree")
    refuse_unlike(first, second)
    runs = []
    for config in (first, second):
        say(f"pack {config.run_name}")
        run, _ = run_or_resume(config, launcher, watch=watch, say=say)
        runs.append(run)
    return compare_folders(runs, None, output, first.tracking.build(), say)


def refuse_unlike(first: PackConfig, second: PackConfig) -> None:
    """Prove that a difference between the packs would be one of their methods.

    Raises:
        ConfigError: it would not; the message names what is unlike.
        InputError: data or weights of a pack that is still to be trained cannot be read.
    """
    place = f"ablation {first.name} and {second.name}"
    if first.run_name == second.run_name:
        raise ConfigError(f"{place}: must be two packs, got {first.run_name} twice. Give another config.")
    _refuse(place, "seeds", set(first.seeds), set(second.seeds), "Set them for both, as seeds=[0,1,2,3,4] does")
    _refuse(place, "model.dim", first.model.dim, second.model.dim, "Packs of one size must be equally wide")
    ways = first.evaluation.singletons, second.evaluation.singletons
    _refuse(place, "evaluation.singletons", *ways, "Score both in one way")
    left_out = _left_out(first) or _left_out(second)
    digests = data_digest(first, left_out), data_digest(second, left_out)
    _refuse(place, "data", *digests, "Give both the same images and classes")


def data_digest(config: PackConfig, left_out: Sequence[str] = ()) -> str:
    """Return the digest of the images that a pack sees: as its run folder says, or as they are now."""
    run = RunFolder.of(config)
    known = run.dataset_digest() if run.manifest_path.is_file() else ""
    return known or preflight(config, left_out).dataset_digest


def _left_out(config: PackConfig) -> tuple[str, ...]:
    """Return the images that a pack which has begun does without; one that has not will do without the same."""
    run = RunFolder.of(config)
    return run.manifest().left_out if run.manifest_path.is_file() else ()


def _refuse(place: str, part: str, first: object, second: object, advice: str) -> None:
    if first != second:
        raise ConfigError(f"{place}: must have the same {part}, got {first} and {second}. {advice}.")
