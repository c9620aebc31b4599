"""The contract of an objective and of its options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.options import Options
from sfora_ray.parameters import ParameterGroup
from sfora_ray.tuples import Pairs, Triplets, pairs_within


class Objective(nn.Module, ABC):
    """A loss over one batch, with whatever it learns itself (proxies, class distributions, a hypergraph network).

    It always receives raw embeddings (before L2 normalisation) in float32 and normalises where its paper does.
    """

    @abstractmethod
    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss of ``(B, D)`` raw embeddings with ``(B,)`` labels in ``0..C-1``."""

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:  # noqa: ARG002
        """Return every own parameter in exactly one group; none, unless a loss learns something itself.

        Args:
            base_lr: the backbone's rate.
        """
        return ()

    def diagnostics(self) -> dict[str, float]:
        """Return what else about the objective is worth a curve; nothing, unless a loss says otherwise."""
        return {}


class TupleObjective(Objective):
    """A loss of pairs or triplets: somebody else may choose them, also between two sets of rows."""

    @abstractmethod
    def compare(self, rows: Tensor, others: Tensor, tuples: Pairs | Triplets) -> Tensor:
        """Return the scalar loss of chosen tuples.

        Args:
            rows: ``(B, D)`` raw embeddings that anchors are rows of.
            others: ``(R, D)`` raw embeddings that positives and negatives are rows of; it may be ``rows`` itself.
            tuples: which rows are compared; a loss of triplets joins pairs that share an anchor. None at all
                gives a loss of 0 that still has a gradient of 0.
        """

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss of all pairs of different rows of ``(B, D)`` raw embeddings."""
        return self.compare(embeddings, embeddings, pairs_within(labels))


class LossOptions(Options, ABC):
    """Options of an objective."""

    name: str
    """Key in the loss table."""

    card: ClassVar[Card]
    """Its row in the table of methods."""

    needs_positives: ClassVar[bool]
    """Whether a batch must hold two images of a class, so that ``samples_per_class: 1`` is refused."""

    takes_tuples: ClassVar[bool] = False
    """Whether its objective is a :class:`TupleObjective`, so that a miner or a second set of rows can be used."""

    def batch_problem(self, batch_size: int, samples_per_class: int | None) -> str | None:  # noqa: ARG002
        """Return what is wrong with such a batch and the way out, or None.

        Args:
            batch_size: images in a batch.
            samples_per_class: images of each class, or None where the sampler does not fix it.
        """
        return None

    @abstractmethod
    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Objective:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes."""
