"""HIST and Proxy Anchor, fused: one network trained on the sum of both objectives.

Loss = HIST + ``weight`` * Proxy Anchor. It is the experiment with which the HERD report shows that no one fixed loss
is best everywhere: there it is a compromise, worse than the better base on each data set. Each part keeps
its own options, parameters and rates.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.hist import HistOptions
from sfora_ray.losses.library import ProxyAnchorOptions
from sfora_ray.parameters import ParameterGroup


class HistProxyAnchor(Objective):
    """Both objectives side by side on the same rows."""

    def __init__(
        self, options: HistProxyAnchorOptions, *, dim: int, num_classes: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.options = options
        self.hist = options.hist.build(dim=dim, num_classes=num_classes, generator=generator)
        self.proxy_anchor = options.proxy_anchor.build(dim=dim, num_classes=num_classes, generator=generator)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss of ``(B, D)`` raw embeddings with ``(B,)`` labels.

        Raises:
            ConfigError: the batch holds one row, of which HIST's BatchNorm has no statistics.
        """
        first: Tensor = self.hist(embeddings, labels)
        second: Tensor = self.proxy_anchor(embeddings, labels)
        return first + self.options.weight * second

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the groups of both parts, each at its own rates."""
        return (*self.hist.parameter_groups(base_lr), *self.proxy_anchor.parameter_groups(base_lr))

    def diagnostics(self) -> dict[str, float]:
        """Return what both parts have to say."""
        return {**self.hist.diagnostics(), **self.proxy_anchor.diagnostics()}


class HistProxyAnchorOptions(LossOptions):
    """Options of the fused objective."""

    card: ClassVar[Card] = Card(
        title="HIST + Proxy Anchor",
        paper="the HERD and SFORA report, as a negative result",
        checked="the sum of the two objectives, which have reference values of their own",
    )
    needs_positives: ClassVar[bool] = False

    name: Literal["hist_proxy_anchor"] = "hist_proxy_anchor"
    hist: HistOptions = HistOptions()
    """Options of HIST."""
    proxy_anchor: ProxyAnchorOptions = ProxyAnchorOptions()
    """Options of Proxy Anchor."""
    weight: float = Field(default=1.0, ge=0)
    """Weight of Proxy Anchor; HIST weighs 1."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> HistProxyAnchor:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes."""
        return HistProxyAnchor(self, dim=dim, num_classes=num_classes, generator=generator)
