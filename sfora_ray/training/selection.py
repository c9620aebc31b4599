"""Which epoch of a member is kept."""

from __future__ import annotations

from dataclasses import dataclass

from sfora_ray.config.pack import PackConfig


@dataclass(frozen=True)
class Best:
    """The best epoch so far, and its value of the selection metric."""

    epoch: int
    value: float


def is_due(config: PackConfig, epoch: int) -> bool:
    """Return whether ``epoch`` ends with an evaluation."""
    return epoch % config.training.evaluate_every == 0 or epoch == config.training.epochs


def in_turn(config: PackConfig, epoch: int) -> bool:
    """Return whether ``epoch`` may be kept also if the member is trained further: not only for being the last."""
    return config.selection.split != "last" and epoch % config.training.evaluate_every == 0


def better(config: PackConfig, best: Best | None, epoch: int, metrics: dict[str, dict[str, float]]) -> Best | None:
    """Return the new best if this epoch is one: strictly larger, so that of equals the earlier epoch stays."""
    split = config.selection.split
    if split == "last":
        return Best(epoch, float(epoch)) if epoch == config.training.epochs else None
    value = metrics[split][config.selection.metric]
    return Best(epoch, value) if best is None or value > best.value else None
