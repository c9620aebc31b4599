"""The contract of a miner and of its options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.options import Options
from sfora_ray.tuples import Pairs, Triplets


class Miner(nn.Module, ABC):
    """Chooses the tuples of a batch that are worth a gradient. It learns nothing and remembers nothing."""

    @abstractmethod
    def forward(self, embeddings: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Pairs | Triplets:
        """Return the tuples chosen among ``(B, D)`` raw embeddings with ``(B,)`` labels; no gradient flows.

        Args:
            embeddings: rows; they are L2-normalised here.
            labels: their classes.
            candidates: the pairs to choose among; all pairs of different rows where absent.
        """


class MinerOptions(Options, ABC):
    """Options of a miner."""

    name: str
    """Key in the miner table."""

    card: ClassVar[Card]
    """Its row in the table of methods."""

    gives: ClassVar[str]
    """``pairs`` or ``triplets``; only a loss of triplets can use the latter."""

    @abstractmethod
    def build(self) -> Miner:
        """Make the miner."""
