"""ProxyNCA and the loss of ProxyNCA++.

Movshovitz-Attias, Toshev, Leung, Ioffe, Singh: No Fuss Distance Metric Learning using Proxies, ICCV 2017.
Teh, DeVries, Taylor: ProxyNCA++, ECCV 2020: the target's proxy joins the denominator and distances
are divided by a temperature of 1/9.

The squared distance of unit vectors is ``2 - 2 cos``, and the constant cancels: the loss is a cross entropy of
cosines times ``2 * scale``. It is written here, for the library takes the logarithm of probabilities and drops every
row whose probability underflows to 0.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.errors import ConfigError
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.weights import draw_normal, weight_group
from sfora_ray.parameters import ParameterGroup


class ProxyNca(Objective):
    """The neighbourhood-component objective with one proxy per training class."""

    def __init__(self, options: ProxyNcaSettings, *, dim: int, num_classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.options = options
        self.proxies = nn.Parameter(torch.empty(num_classes, dim))
        draw_normal(self.proxies, std=options.init_std, generator=generator)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss, computed in the proxies' precision whatever autocast says."""
        with torch.autocast(embeddings.device.type, enabled=False):
            rows = embeddings.to(self.proxies.dtype)
            logits = 2 * self.options.scale * F.normalize(rows) @ F.normalize(self.proxies).T  # (B, C)
            if self.options.denominator == "all":
                return F.cross_entropy(logits, labels)
            own = labels[:, None]
            return (logits.scatter(1, own, -torch.inf).logsumexp(dim=1, keepdim=True) - logits.gather(1, own)).mean()

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the proxies at their own absolute rate; ``base_lr`` does not reach them."""
        del base_lr
        options = self.options
        return weight_group(f"{options.name}.proxies", self.proxies, options.proxy_lr, decays=options.proxy_decay)


class ProxyNcaSettings(LossOptions):
    """What ProxyNCA and ProxyNCA++ can both be told."""

    needs_positives: ClassVar[bool] = False

    scale: float = Field(default=1.0, gt=0)
    """Multiplies the squared distances; one over the temperature."""
    denominator: Literal["all", "others"] = "all"
    """Whether the target's own proxy is among those a row is compared with (``others``: the paper of 2017)."""
    init_std: float = Field(default=1.0, gt=0)
    """Spread of the initial proxies. Only directions count, but under Adam longer proxies turn more slowly."""
    proxy_lr: float = Field(default=1e-2, ge=0)
    """Absolute learning rate of the proxies. Rates do not carry over between optimisers: the authors' 4e2 of
    ProxyNCA++ belongs to Adam with an epsilon of 1."""
    proxy_decay: bool = False
    """Whether weight decay reaches the proxies."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> ProxyNca:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes.

        Raises:
            ConfigError: a row would be compared with the proxies of no other class.
        """
        if self.denominator == "others" and num_classes < 2:
            raise ConfigError(
                "loss.denominator: others compares a row with the proxies of other classes, but there is one training "
                "class alone. Take all, or data with more classes"
            )
        return ProxyNca(self, dim=dim, num_classes=num_classes, generator=generator)


class ProxyNcaOptions(ProxyNcaSettings):
    """Options of ProxyNCA."""

    card: ClassVar[Card] = Card(
        title="ProxyNCA",
        paper="Movshovitz-Attias, Toshev, Leung, Ioffe, Singh, ICCV 2017",
        checked="reference values of the library and of ProxyNCA++'s authors' program, gradients included",
        differences="the target's proxy is in the denominator (as in the library) unless 'denominator: others'; rows "
        "of probability 0 stay in the mean",
    )

    name: Literal["proxy_nca"] = "proxy_nca"


class ProxyNcaPlusPlusOptions(ProxyNcaSettings):
    """Options of ProxyNCA++; the defaults are the authors' but for the proxies' rate."""

    card: ClassVar[Card] = Card(
        title="ProxyNCA++",
        paper="Teh, DeVries, Taylor, ECCV 2020",
        checked="reference values of the authors' program, gradients included",
        differences="here: probability over all proxies, low temperature, fast proxies; max pooling and layer norm "
        "are settings of the model, balanced batches of the sampler; proxies learn at 1e-2 unless told otherwise",
    )

    name: Literal["proxy_nca_pp"] = "proxy_nca_pp"
    scale: float = Field(default=9.0, gt=0)
    """Multiplies the squared distances: one over the temperature (the authors' program: 3, squared)."""
    init_std: float = Field(default=0.125, gt=0)
    """Spread of the initial proxies. Only directions count, but under Adam longer proxies turn more slowly."""
