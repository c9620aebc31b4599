"""HIST: class distributions, a hypergraph of the batch, and a small hypergraph network that classifies it.

Lim, Yun, Park, Choi: Hypergraph-Induced Semantic Tuplet Loss for Deep Metric Learning, CVPR 2022.
Loss = distribution loss + ``lambda_s`` * cross entropy of the network's node logits.

Differences from the authors' program:

* Distances are matrix products and probabilities stay logarithms (see :mod:`sfora_ray.losses.hypergraph`).
* ``hgnn_input: normalized`` feeds L2-normalised rows to the network, as the program behind the HERD numbers
  does; ``raw`` feeds the embedder's output, as the authors do.
* Log-variances that start below zero are clipped and get no gradient. Under Adam with coupled decay they
  revive; under AdamW they rest for ever, and steps of 0.1 soon carry most others there. With
  ``log_variance_init: alive`` all start above zero, and a clipped one still follows a gradient back inside.
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
from sfora_ray.losses.hypergraph import (
    class_distances,
    clip_published,
    clip_reviving,
    distribution_loss,
    incidence,
    propagation,
)
from sfora_ray.parameters import ParameterGroup, split_by_decay


class HypergraphNetwork(nn.Module):
    """Two propagations over the hypergraph with BatchNorm and LeakyReLU between; ``(B, D)`` to ``(B, C)``."""

    def __init__(self, *, dim: int, hidden: int, num_classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.theta1 = _linear(dim, hidden, generator)
        self.norm = nn.BatchNorm1d(hidden)
        self.theta2 = _linear(hidden, num_classes, generator)

    def forward(self, nodes: Tensor, propagate: Tensor) -> Tensor:
        """Return ``(B, C)`` logits of ``(B, D)`` nodes under a ``(B, B)`` propagation matrix."""
        inner = self.norm(propagate @ self.theta1(nodes))  # (B, hidden)
        outer: Tensor = self.theta2(F.leaky_relu(inner, negative_slope=0.1))  # (B, C)
        return propagate @ outer


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Make a linear layer with torch's default distribution, drawn from our generator."""
    layer = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
    bound = inputs**-0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


class Hist(Objective):
    """The HIST objective; its class means, log-variances and network are its own parameters."""

    def __init__(self, options: HistOptions, *, dim: int, num_classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.options = options
        self.means = nn.Parameter(_fan_out_normal(num_classes, dim, generator))
        draws = _fan_out_normal(num_classes, dim, generator)
        self.log_variances = nn.Parameter(draws.abs() if options.log_variance_init == "alive" else draws)
        self.network = HypergraphNetwork(dim=dim, hidden=options.hidden, num_classes=num_classes, generator=generator)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss, computed in the parameters' precision whatever autocast says.

        Raises:
            ConfigError: the batch holds one row, of which BatchNorm has no statistics.
        """
        if len(labels) < 2:
            raise ConfigError(
                "objective hist: a batch must hold at least 2 images for the network's BatchNorm, "
                f"got {len(labels)}. Raise the batch size."
            )
        with torch.autocast(embeddings.device.type, enabled=False):
            return self._loss(embeddings.to(self.means.dtype), labels)

    def _loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        options = self.options
        normalized = F.normalize(embeddings)
        clip = clip_reviving if options.log_variance_init == "alive" else clip_published
        distances = class_distances(normalized, self.means, clip(self.log_variances))  # (B, C)
        memberships = incidence(distances, labels, alpha=options.alpha)  # (B, E)
        nodes = normalized if options.hgnn_input == "normalized" else embeddings
        logits = self.network(nodes, propagation(memberships))  # (B, C)
        first = distribution_loss(distances, labels, tau=options.tau)
        return first + options.lambda_s * F.cross_entropy(logits, labels)

    @property
    def dead_variance_share(self) -> float:
        """The share of log-variances that are clipped, which rest under AdamW unless ``alive``."""
        alive = (self.log_variances > 0) & (self.log_variances < 6)
        return 1.0 - float(alive.double().mean())

    def diagnostics(self) -> dict[str, float]:
        """Return the share of clipped log-variances."""
        return {"dead_variance_share": self.dead_variance_share}

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the distributions at their own rate and the network at a multiple of the backbone's."""
        options = self.options
        own = (self.means, self.log_variances)
        network_lr = base_lr * options.hgnn_lr_factor
        return (
            ParameterGroup("hist.distributions", own, options.lr_distributions, decays=True, warms_up=True),
            *split_by_decay("hist.network", self.network, network_lr, warms_up=True),
        )


def _fan_out_normal(num_classes: int, dim: int, generator: torch.Generator) -> Tensor:
    """Draw ``(C, D)`` normal values of standard deviation ``sqrt(2 / C)``."""
    return nn.init.kaiming_normal_(torch.empty(num_classes, dim), mode="fan_out", generator=generator)


class HistOptions(LossOptions):
    """Options of HIST; the defaults are HERD's, which are the authors' for Cars-196."""

    card: ClassVar[Card] = Card(
        title="HIST",
        paper="Lim, Yun, Park, Choi, CVPR 2022",
        checked="reference values of the authors' and of HERD's program, gradients included",
        differences="distances as matrix products; rows of probability 0 stay in the mean",
    )
    needs_positives: ClassVar[bool] = False

    name: Literal["hist"] = "hist"
    tau: float = Field(default=32.0, gt=0)
    """Scale of the distances in the distribution loss."""
    alpha: float = Field(default=0.9, gt=0)
    """How fast membership of other classes' hyperedges falls with distance."""
    lambda_s: float = Field(default=1.0, ge=0)
    """Weight of the network's cross entropy."""
    hidden: int = Field(default=512, ge=1, le=65536)
    """Width of the hypergraph network."""
    lr_distributions: float = Field(default=0.1, ge=0)
    """Absolute learning rate of class means and log-variances."""
    hgnn_lr_factor: float = Field(default=10.0, ge=0)
    """Learning rate of the hypergraph network, as a multiple of the backbone's."""
    hgnn_input: Literal["normalized", "raw"] = "normalized"
    """What the hypergraph network sees: L2-normalised rows (HERD) or the embedder's output (authors)."""
    log_variance_init: Literal["published", "alive"] = "published"
    """Signed draws, clipped ones get no gradient (published); or all above zero and able to come back."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Hist:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes."""
        return Hist(self, dim=dim, num_classes=num_classes, generator=generator)
