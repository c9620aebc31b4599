"""The whole loop state of a member between two epochs, in safetensors and JSON: nothing here can run code.

Batches, augmentation and dropout are functions of (seed, epoch, step), so that no generator has to be kept.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from sfora_ray.errors import InputError
from sfora_ray.files import read_json, sha256_of, write_bytes, write_json
from sfora_ray.training.parts import Parts
from sfora_ray.training.selection import Best

_log = logging.getLogger(__name__)

_KEPT = 2


@dataclass(frozen=True)
class LoopState:
    """Where the loop stands: epochs done, the best so far, and seconds spent in training steps."""

    epoch: int = 0
    best: Best | None = None
    train_seconds: float = 0.0


def save_checkpoint(folder: Path, parts: Parts, state: LoopState) -> None:
    """Write the loop state of ``state.epoch`` and drop all but the last two."""
    target = folder / f"epoch-{state.epoch:05d}"
    write_bytes(target / "state.safetensors", safetensors.torch.save(_tensors(parts)))
    write_json(
        target / "loop.json",
        {
            "epoch": state.epoch,
            "best": None if state.best is None else {"epoch": state.best.epoch, "value": state.best.value},
            "train_seconds": state.train_seconds,
            "scaler": parts.scaler.state_dict(),
            "sha256": sha256_of(target / "state.safetensors"),
        },
    )
    for old in _checkpoints(folder)[:-_KEPT]:
        shutil.rmtree(old)
    _drop_unnamed_best(folder)


def load_checkpoint(folder: Path, parts: Parts) -> LoopState:
    """Put the newest whole checkpoint into ``parts``; with none, the loop starts at the beginning."""
    for candidate in reversed(_checkpoints(folder)):
        loop = _whole(candidate)
        if loop is not None:
            _restore(parts, safetensors.torch.load_file(candidate / "state.safetensors"), loop["scaler"])
            best = None if loop["best"] is None else Best(loop["best"]["epoch"], loop["best"]["value"])
            return LoopState(loop["epoch"], best, loop["train_seconds"])
    return LoopState()


def save_best(folder: Path, parts: Parts, epoch: int) -> None:
    """Keep the student of ``epoch``: it is the best so far."""
    weights = {name: tensor.contiguous() for name, tensor in parts.embedder.state_dict().items()}
    write_bytes(_best_path(folder, epoch), safetensors.torch.save(weights))


def load_best(folder: Path, parts: Parts, epoch: int) -> None:
    """Put the student of the best epoch back."""
    parts.embedder.load_state_dict(safetensors.torch.load_file(_best_path(folder, epoch)))


def _best_path(folder: Path, epoch: int) -> Path:
    return folder / f"best-{epoch:05d}.safetensors"


def _drop_unnamed_best(folder: Path) -> None:
    """Drop the students that no kept checkpoint names as its best."""
    loops = [_whole(checkpoint) for checkpoint in _checkpoints(folder)]
    named = {_best_path(folder, loop["best"]["epoch"]) for loop in loops if loop is not None and loop["best"]}
    for path in set(folder.glob("best-*.safetensors")) - named:
        path.unlink()


def _whole(checkpoint: Path) -> dict[str, Any] | None:
    """Return a checkpoint's loop record, or None with a warning if it is damaged."""
    try:
        loop: dict[str, Any] = read_json(checkpoint / "loop.json")
        if sha256_of(checkpoint / "state.safetensors") == loop["sha256"]:
            return loop
    except (InputError, OSError, KeyError):
        pass
    _log.warning("%s: damaged, the checkpoint before it is used", checkpoint)
    return None


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("epoch-*/loop.json"))


def _tensors(parts: Parts) -> dict[str, Tensor]:
    tensors = {f"recipe.{name}": tensor for name, tensor in parts.recipe.state_dict().items()}
    for index, entries in parts.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{key}": torch.as_tensor(value) for key, value in entries.items()}
    return {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}


def _restore(parts: Parts, tensors: dict[str, Tensor], scaler: dict[str, Any]) -> None:
    recipe = {name.removeprefix("recipe."): t for name, t in tensors.items() if name.startswith("recipe.")}
    parts.recipe.load_state_dict(recipe)
    entries: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".", 2)
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
