"""Proxy Anchor, from pytorch-metric-learning.

Kim, Kim, Cho, Kwak: Proxy Anchor Loss for Deep Metric Learning, CVPR 2020, eq. 4.

The library draws initial weights from the global generator and turns its proxies into the precision of
whatever it is fed; here proxies come from a passed generator and keep their precision.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import ProxyAnchorLoss
from pytorch_metric_learning.reducers import DivisorReducer
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.weights import weight_group
from sfora_ray.parameters import ParameterGroup

ProxyInit = Literal["kaiming", "unit"]


class ProxyAnchor(Objective):
    """The Proxy Anchor objective with one proxy per training class."""

    def __init__(self, options: ProxyAnchorOptions, *, dim: int, num_classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.options = options
        self.loss = ProxyAnchorLoss(
            num_classes=num_classes,
            embedding_size=dim,
            margin=options.delta,
            alpha=options.alpha,
            weight_init_func=nn.init.zeros_,
            weight_regularizer=None,
            embedding_regularizer=None,
            distance=CosineSimilarity(collect_stats=False),
            reducer=DivisorReducer(collect_stats=False),
            collect_stats=False,
        )
        initial_proxies(self.proxies, init=options.init, generator=generator)

    @property
    def proxies(self) -> nn.Parameter:
        """The ``(C, D)`` proxies, of any length."""
        proxies: nn.Parameter = self.loss.proxies
        return proxies

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss, computed in the proxies' precision whatever autocast says."""
        with torch.autocast(embeddings.device.type, enabled=False):
            loss: Tensor = self.loss(embeddings.to(self.proxies.dtype), labels)
            return loss

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the proxies at their own absolute rate; ``base_lr`` does not reach them."""
        del base_lr
        options = self.options
        return weight_group("proxy_anchor.proxies", self.proxies, options.proxy_lr, decays=options.proxy_decay)


@torch.no_grad()
def initial_proxies(proxies: Tensor, *, init: ProxyInit, generator: torch.Generator) -> None:
    """Fill ``(C, D)`` proxies in place.

    The loss sees only directions, but under Adam the length sets the angle of a step: rows of ``kaiming``
    (authors, library) are ``sqrt(2 D / C)`` long, about 3.2 for 100 classes; rows of ``unit`` have length 1.
    """
    if init == "kaiming":
        nn.init.kaiming_normal_(proxies, mode="fan_out", generator=generator)
        return
    proxies.normal_(generator=generator)
    proxies.copy_(F.normalize(proxies))


class ProxyAnchorOptions(LossOptions):
    """Options of Proxy Anchor."""

    card: ClassVar[Card] = Card(
        title="Proxy Anchor",
        paper="Kim, Kim, Cho, Kwak, CVPR 2020, eq. 4",
        checked="reference values of the authors' program and the library, gradients included",
        differences="proxies drawn from a passed generator",
    )
    needs_positives: ClassVar[bool] = False

    name: Literal["proxy_anchor"] = "proxy_anchor"
    alpha: float = Field(default=32.0, gt=0)
    """Scale of the cosines."""
    delta: float = Field(default=0.1, ge=0)
    """Margin of the cosines."""
    init: ProxyInit = "kaiming"
    """Initial proxies: ``kaiming`` (authors) or ``unit`` length (the program behind the HERD numbers)."""
    proxy_lr: float = Field(default=1e-2, ge=0)
    """Absolute learning rate of the proxies."""
    proxy_decay: bool = False
    """Whether weight decay reaches the proxies (the authors': yes)."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> ProxyAnchor:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes."""
        return ProxyAnchor(self, dim=dim, num_classes=num_classes, generator=generator)
