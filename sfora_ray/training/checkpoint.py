"""The whole loop state of a member between two steps, in safetensors and JSON: nothing here can run code.

``step-<n>/state.safetensors`` holds student, teacher, objective, optimiser and the losses of the epoch under way;
``step-<n>/loop.json`` the place in the loop, the best so far, the loss scaler and SHA-256 sums of all of it. It is
written last, so a checkpoint is whole or absent; one damaged later is passed over with a warning. The last two are
kept. Batches, augmentation and dropout are functions of (seed, epoch, step), so that no generator has to be kept, and
the tracker asks its server how far it was told.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from sfora_ray.errors import InputError, RunFolderError, StorageError
from sfora_ray.files import read_json, sha256_of, write_bytes, write_json
from sfora_ray.recipes.parallel import agree
from sfora_ray.training.epoch import EpochSoFar
from sfora_ray.training.parts import Parts
from sfora_ray.training.selection import Best

_log = logging.getLogger(__name__)

_SECONDS_TO_APPEAR = 30.0
_FORMAT = 2


@dataclass(frozen=True)
class LoopState:
    """Where the loop stands.

    Attributes:
        epochs_done: whole epochs, evaluated and recorded.
        under_way: what is done of the epoch after those.
        best: the best epoch among those evaluated because their turn had come.
        last: the last epoch, where it is the one to keep and was evaluated for being the last. It is forgotten
            when the member is trained for more epochs, so that an extended member equals a straight one.
        train_seconds: wall time of the steps of whole epochs.
    """

    epochs_done: int = 0
    under_way: EpochSoFar = field(default_factory=EpochSoFar)
    best: Best | None = None
    last: Best | None = None
    train_seconds: float = 0.0

    @property
    def selected(self) -> Best | None:
        """Return the epoch that is kept as things stand."""
        return self.last or self.best

    def steps_done(self, parts: Parts) -> int:
        """Return the optimiser steps done in all."""
        return self.epochs_done * parts.sampler.steps_per_epoch + self.under_way.steps


def save_checkpoint(folder: Path, parts: Parts, state: LoopState) -> None:
    """Write the loop state and drop all but it and the one before it; an OSError leaves those as they were.

    Checkpoints of later steps are dropped as well: they were passed over, or another attempt made the same state.
    """
    target = folder / f"step-{state.steps_done(parts):08d}"
    write_bytes(target / "state.safetensors", safetensors.torch.save(_tensors(parts, state.under_way)))
    loop = {
        "format": _FORMAT,
        "epochs_done": state.epochs_done,
        "seconds_under_way": state.under_way.seconds,
        "best": _best_record(folder, state.best),
        "last": _best_record(folder, state.last),
        "train_seconds": state.train_seconds,
        "scaler": parts.scaler.state_dict(),
        "state_sha256": sha256_of(target / "state.safetensors"),
    }
    write_json(target / "loop.json", {**loop, "sha256": _digest(loop)})
    before = [path for path in _checkpoints(folder) if path < target]
    for other in set(_checkpoints(folder)) - {target, *before[-1:]}:
        shutil.rmtree(other, ignore_errors=True)
    _drop_unnamed_best(folder)


def load_checkpoint(folder: Path, parts: Parts) -> LoopState:
    """Put the newest whole checkpoint into ``parts``; with none, the loop starts at the beginning.

    Of several workers the first one chooses, for a shared folder may show each of them another state.

    Raises:
        StorageError: the folder cannot be read, or was changed meanwhile; a later try may go well.
        RunFolderError: another version wrote the checkpoint.
    """
    whole = _newest_whole(folder) if parts.worker.is_first else None
    chosen = agree(-1 if whole is None else int(whole.name.removeprefix("step-")), parts.worker.device)
    if chosen < 0:
        return LoopState()
    target = folder / f"step-{chosen:08d}"
    _wait_for(target / "loop.json")
    try:
        loop = read_json(target / "loop.json")
        tensors = safetensors.torch.load_file(target / "state.safetensors")
    except (InputError, OSError) as error:
        raise StorageError(f"{target}: changed or went away while it was read ({error}).") from error
    if loop["format"] != _FORMAT:
        raise RunFolderError(
            f"{target}: a checkpoint must be of format {_FORMAT}, got {loop['format']}: another version wrote it. "
            "Finish the pack with that version, or remove its member's checkpoint folder to train it anew."
        )
    _restore(parts, tensors, loop["scaler"])
    ends_here = loop["epochs_done"] == parts.config.training.epochs
    losses = {name: tensor.to(parts.worker.device) for name, tensor in _below("losses.", tensors).items()}
    return LoopState(
        epochs_done=loop["epochs_done"],
        under_way=EpochSoFar(losses, loop["seconds_under_way"], tensors.get("shown")),
        best=_best_of(loop["best"]),
        last=_best_of(loop["last"]) if ends_here else None,
        train_seconds=loop["train_seconds"],
    )


def save_best(folder: Path, parts: Parts, epoch: int) -> None:
    """Keep the student of ``epoch``: it is the best so far."""
    weights = {name: tensor.contiguous() for name, tensor in parts.embedder.state_dict().items()}
    write_bytes(_best_path(folder, epoch), safetensors.torch.save(weights))


def load_best(folder: Path, parts: Parts, epoch: int) -> None:
    """Put the student of the best epoch back."""
    parts.embedder.load_state_dict(safetensors.torch.load_file(_best_path(folder, epoch)))


def _best_path(folder: Path, epoch: int) -> Path:
    return folder / f"best-{epoch:05d}.safetensors"


def _best_record(folder: Path, best: Best | None) -> dict[str, Any] | None:
    if best is None:
        return None
    return {"epoch": best.epoch, "value": best.value, "sha256": sha256_of(_best_path(folder, best.epoch))}


def _best_of(record: Mapping[str, Any] | None) -> Best | None:
    return None if record is None else Best(record["epoch"], record["value"])


def _drop_unnamed_best(folder: Path) -> None:
    """Drop the students that no kept checkpoint names."""
    named: set[Path] = set()
    for checkpoint in _checkpoints(folder):
        try:
            loop = read_json(checkpoint / "loop.json")
            named |= {_best_path(folder, loop[key]["epoch"]) for key in ("best", "last") if loop[key]}
        except (InputError, KeyError, TypeError):
            return  # damaged: what it named is not known, so nothing is dropped
    for path in set(folder.glob("best-*.safetensors")) - named:
        path.unlink(missing_ok=True)


def _newest_whole(folder: Path) -> Path | None:
    for candidate in reversed(_checkpoints(folder)):
        fault = _fault(folder, candidate)
        if not fault:
            return candidate
        _log.warning("%s: damaged (%s); the checkpoint before it is used", candidate, fault)
    return None


def _wait_for(path: Path) -> None:
    """Wait until this worker's view of a shared folder shows what the first worker's does."""
    end = time.monotonic() + _SECONDS_TO_APPEAR
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.2)


def _fault(folder: Path, checkpoint: Path) -> str:
    """Return what is wrong with a checkpoint, or an empty string; storage that fails is not the checkpoint's fault."""
    try:
        loop = read_json(checkpoint / "loop.json")
        if loop.pop("sha256") != _digest(loop):
            return "loop.json is not what was written"
        if sha256_of(checkpoint / "state.safetensors") != loop["state_sha256"]:
            return "state.safetensors is not what was written"
        for key in ("best", "last"):
            if loop[key] and sha256_of(_best_path(folder, loop[key]["epoch"])) != loop[key]["sha256"]:
                return f"{_best_path(folder, loop[key]['epoch']).name} is not what was written"
    except (InputError, FileNotFoundError, KeyError, TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _digest(loop: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(loop, sort_keys=True).encode()).hexdigest()


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("step-*/loop.json"))


def _tensors(parts: Parts, under_way: EpochSoFar) -> dict[str, Tensor]:
    tensors = {f"recipe.{name}": tensor for name, tensor in parts.recipe.state_dict().items()}
    for index, entries in parts.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{key}": torch.as_tensor(value) for key, value in entries.items()}
    tensors |= {f"losses.{name}": values for name, values in under_way.losses.items()}
    if under_way.shown is not None:
        tensors["shown"] = under_way.shown
    return {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _restore(parts: Parts, tensors: Mapping[str, Tensor], scaler: dict[str, Any]) -> None:
    parts.recipe.load_state_dict(_below("recipe.", tensors))
    entries: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _below("optimizer.", tensors).items():
        index, key = name.split(".", 1)
        entries.setdefault(int(index), {})[key] = tensor
    whole = parts.optimizer.state_dict()
    parts.optimizer.load_state_dict({"state": entries, "param_groups": whole["param_groups"]})
    _lay_out_as_parameters(parts)
    parts.scaler.load_state_dict(scaler)


def _lay_out_as_parameters(parts: Parts) -> None:
    """Give moments the memory layout of their parameters: fused optimisers refuse any other, such as channels-last."""
    for parameter, entries in parts.optimizer.state.items():
        for key, value in entries.items():
            if value.shape == parameter.shape:
                entries[key] = torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)
