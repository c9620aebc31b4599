"""The contract of an objective and of its options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from sfora_ray.options import Options
from sfora_ray.parameters import ParameterGroup


class Objective(nn.Module, ABC):
    """A loss over one batch, with whatever it learns itself (proxies, class distributions, a hypergraph network).

    It always receives raw embeddings (before L2 normalisation) in float32 and normalises where its paper does.
    """

    @abstractmethod
    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss of ``(B, D)`` raw embeddings with ``(B,)`` labels in ``0..C-1``."""

    @abstractmethod
    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        """Return every own parameter in exactly one group; ``base_lr`` is the backbone's rate."""

    def diagnostics(self) -> dict[str, float]:
        """Return what else about the objective is worth a curve; nothing, unless a loss says otherwise."""
        return {}


class LossOptions(Options, ABC):
    """Options of an objective."""

    name: str
    """Key in the loss table."""

    needs_positives: ClassVar[bool]
    """Whether a batch must hold two images of a class, so that ``samples_per_class: 1`` is refused."""

    @abstractmethod
    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Objective:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes."""
