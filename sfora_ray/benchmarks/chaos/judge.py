"""Whether a pack that was struck ended as if nothing had happened."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import psutil

from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.tracking.reader import TrackedRun, tracked_runs
from sfora_ray.training.member_folder import EpochRecord

_SECONDS_TO_GO = 40.0
_SAME_FILES = ("model.safetensors", "embeddings.train.npz", "embeddings.test.npz")


def differing_bits(run: RunFolder, reference: RunFolder) -> list[str]:
    """Return what differs from an undisturbed pack: members' files, folds, losses, and every number of the summary."""
    found = [
        f"{spec.id} {name}"
        for spec in run.specs()
        for name in _SAME_FILES
        if _bytes(run.member(spec).path / name) != _bytes(reference.member(spec).path / name)
    ]
    found += [
        f"fold {path.stem}"
        for path in sorted(reference.folds_path.glob("*.safetensors"))
        if _bytes(run.fold_path(path.stem)) != path.read_bytes()
    ]
    found += [f"{spec.id} losses" for spec in run.specs() if _losses(run, spec) != _losses(reference, spec)]
    ours, theirs = run.summary(), reference.summary()
    if (ours.single, ours.pack_curve, ours.folds) != (theirs.single, theirs.pack_curve, theirs.folds):
        found.append("summary")
    return found


def faults_of_tracker(config: PackConfig, run: RunFolder, uri: str, experiment: str) -> list[str]:
    """Return what is wrong in the tracker: runs that are absent, double or open, and points lost or out of order."""
    runs = tracked_runs(uri, experiment)
    found = [f"{one.key} is {one.status}" for one in runs if one.status != "FINISHED"]
    keys = [one.key for one in runs]
    found += [f"{key} is there {keys.count(key)} times" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    by_part = {one.key.rpartition("/")[2]: one for one in runs}
    for part in ("pack", *(spec.id for spec in run.specs()), *(f"fold:{fold.canonical_name}" for fold in config.folds)):
        if part not in by_part:
            found.append(f"{part} is absent")
    for spec in run.specs():
        if spec.id in by_part:
            found += _faults_of_curves(spec, run.member(spec).epochs(), by_part[spec.id])
    return found


def _faults_of_curves(spec: MemberSpec, epochs: list[EpochRecord], tracked: TrackedRun) -> list[str]:
    found = [
        f"{spec.id} {key}: steps {steps}"
        for key, steps in tracked.steps.items()
        if any(later <= earlier for earlier, later in pairwise(steps))
    ]
    wanted = [(record.epoch, record.loss["total"]) for record in epochs]
    if list(zip(tracked.steps.get("loss", ()), tracked.values.get("loss", ()), strict=True)) != wanted:
        found.append(f"{spec.id} loss is not that of epochs.jsonl")
    return found


def processes_left(processes: set[psutil.Process]) -> list[str]:
    """Wait for these processes to go; return those that stay."""
    _, alive = psutil.wait_procs(list(processes), timeout=_SECONDS_TO_GO)
    return [f"process {one.pid}" for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _losses(run: RunFolder, spec: MemberSpec) -> list[dict[str, float]]:
    return [record.loss for record in run.member(spec).epochs()]
