"""Smooth-AP: average precision with a steep sigmoid in place of the step that counts ranks.

Brown, Xie, Kalogeiton, Zisserman: Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval, ECCV 2020.
Loss = 1 - mean over queries of the smoothed average precision, every row of the batch being a query that also finds
itself.

Differences from the authors' program: theirs reshapes a batch of equal, contiguous classes; here classes may have
any sizes and order. Theirs clamps the exponent to 50, where the sigmoid is flat to the last digit anyway.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.batch_cosines import same_class, unit_rows
from sfora_ray.losses.ranking import mean_soft_precision


class SmoothAp(Objective):
    """The Smooth-AP objective; it learns nothing itself."""

    def __init__(self, options: SmoothApOptions) -> None:
        super().__init__()
        self.options = options

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss of ``(B, D)`` raw embeddings with ``(B,)`` labels."""
        with torch.autocast(embeddings.device.type, enabled=False):
            rows = unit_rows(embeddings)
            return 1 - mean_soft_precision(rows @ rows.T, same_class(labels), self._ahead)

    def _ahead(self, leads: Tensor, relevant: Tensor) -> Tensor:
        del relevant
        return torch.sigmoid(leads / self.options.tau)


class SmoothApOptions(LossOptions):
    """Options of Smooth-AP."""

    card: ClassVar[Card] = Card(
        title="Smooth-AP",
        paper="Brown, Xie, Kalogeiton, Zisserman, ECCV 2020",
        checked="reference values of the authors' program and of ROADMAP's (unequal classes), gradients included",
        differences="any number of classes and of images a class, in any order",
    )
    needs_positives: ClassVar[bool] = True

    name: Literal["smooth_ap"] = "smooth_ap"
    tau: float = Field(default=0.01, gt=0)
    """Temperature of the sigmoid: a lead of this cosine counts as .73 of a rank."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> SmoothAp:  # noqa: ARG002
        """Make the objective; it has no parameters, so the sizes do not matter."""
        return SmoothAp(self)
