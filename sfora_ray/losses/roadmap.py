"""ROADMAP: an upper bound of average precision's loss, and a calibration that holds for all batches alike.

Ramzi, Thome, Rambour, Audebert, Bitot: Robust and Decomposable Average Precision for Image Retrieval, NeurIPS 2021.
SupAP counts a negative ahead of a positive by a function that lies above the step: a sigmoid of temperature ``tau``
behind it, the sigmoid raised by ``start`` up to a lead of ``delta``, and from there a line of slope ``rho``.
Positives ahead of a positive are counted by the step itself, without a gradient. The calibration is the margin
contrast of cosines.

Readings: in the paper the line begins where the sigmoid ends (``offset: null``) and both losses weigh one half;
the authors' config begins it at ``offset: 1.44``, below that, and weighs both 1. An older program's line,
``rho * lead + c``, is ``offset: c + rho * delta``. For iNaturalist the authors use ``start: 0, offset: 1``.

Differences from the authors' program: none in the numbers; theirs takes a step's derivative, which torch refuses
today.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.batch_cosines import margin_contrast, refuse_reversed_margins, same_class, unit_rows
from sfora_ray.losses.ranking import mean_soft_precision


class Roadmap(Objective):
    """The ROADMAP objective; it learns nothing itself."""

    def __init__(self, options: RoadmapOptions) -> None:
        super().__init__()
        self.options = options

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss of ``(B, D)`` raw embeddings with ``(B,)`` labels."""
        with torch.autocast(embeddings.device.type, enabled=False):
            rows = unit_rows(embeddings)
            return self._loss(rows @ rows.T, same_class(labels))

    def _loss(self, cosines: Tensor, same: Tensor) -> Tensor:
        options = self.options
        bound = 1 - mean_soft_precision(cosines, same, self._ahead)
        calibration = margin_contrast(
            cosines, same, positive_margin=options.positive_margin, negative_margin=options.negative_margin
        )
        return options.ap_weight * bound + options.calibration_weight * calibration

    def _ahead(self, leads: Tensor, relevant: Tensor) -> Tensor:
        step = (leads.detach() >= 0).to(leads.dtype)
        return torch.where(relevant, step, self._above_the_step(leads))

    def _above_the_step(self, leads: Tensor) -> Tensor:
        options = self.options
        sigmoid = torch.sigmoid(leads / options.tau)
        line = options.rho * (leads - options.delta) + options.line_start
        raised = torch.where(leads > 0, sigmoid + options.start, sigmoid)
        return torch.where(leads > options.delta, line, raised)


class RoadmapOptions(LossOptions):
    """Options of ROADMAP; the defaults are the paper's."""

    card: ClassVar[Card] = Card(
        title="ROADMAP",
        paper="Ramzi, Thome, Rambour, Audebert, Bitot, NeurIPS 2021",
        checked="reference values of the authors' program (SupAP in 4 settings, calibration), gradients; slow loops",
    )
    needs_positives: ClassVar[bool] = True

    name: Literal["roadmap"] = "roadmap"
    tau: float = Field(default=0.01, gt=0)
    """Temperature of the sigmoid."""
    rho: float = Field(default=100.0, ge=0)
    """Slope of the line for negatives far ahead."""
    delta: float = Field(default=0.05, ge=0)
    """Lead, in cosine, from which the line takes over."""
    start: float = Field(default=0.5, ge=0)
    """What is added to the sigmoid of a negative that is ahead, by less than ``delta``."""
    offset: float | None = None
    """Where the line begins; null: where the raised sigmoid ends (the paper). The authors' config says 1.44."""
    positive_margin: float = Field(default=0.9, ge=-1, le=1)
    """Cosine that positives should reach."""
    negative_margin: float = Field(default=0.6, ge=-1, le=1)
    """Cosine that negatives should not exceed."""
    ap_weight: float = Field(default=0.5, ge=0)
    """Weight of SupAP (the authors' config: 1)."""
    calibration_weight: float = Field(default=0.5, ge=0)
    """Weight of the calibration (the authors' config: 1)."""

    @model_validator(mode="after")
    def _margins_are_in_order_and_something_counts(self) -> RoadmapOptions:
        refuse_reversed_margins(positive=self.positive_margin, negative=self.negative_margin)
        if not self.ap_weight and not self.calibration_weight:
            raise ValueError("ap_weight and calibration_weight must not both be 0: nothing would be learnt")
        return self

    @property
    def line_start(self) -> float:
        """Return the value of the line at a lead of ``delta``."""
        if self.offset is not None:
            return self.offset
        return self.start + 1 / (1 + math.exp(-self.delta / self.tau))

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Roadmap:  # noqa: ARG002
        """Make the objective; it has no parameters, so the sizes do not matter."""
        return Roadmap(self)
