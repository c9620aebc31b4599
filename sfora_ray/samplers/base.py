"""The contract of a sampler: which images make a batch is a function of (seed, epoch, step).

So a run resumes inside an epoch exactly. A sampler that learns from the network asks for embeddings before an epoch
and is then, for that epoch, another such function; what it was shown is part of the member's checkpoint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from pydantic import Field

from sfora_ray.arrays import Float32, Int64
from sfora_ray.card import Card
from sfora_ray.options import Options


class Sampler(ABC):
    """Batches by number. Subclasses are frozen records."""

    steps_per_epoch: int
    """Number of batches in each epoch."""

    notes: tuple[str, ...]
    """What a reader must know, e.g. which classes are never drawn."""

    @abstractmethod
    def batch(self, epoch: int, step: int) -> Int64:
        """Return the ``(B,)`` table rows of one batch."""

    def wants(self, epoch: int) -> Int64:  # noqa: ARG002
        """Return the table rows whose embeddings it asks for before an epoch; none, unless it learns from them."""
        return np.zeros(0, np.int64)

    def informed(self, epoch: int, embeddings: Float32) -> Sampler:  # noqa: ARG002
        """Return the sampler of an epoch, given the L2-normalised embeddings ``(n, D)`` of the rows it wanted."""
        return self


class SamplerOptions(Options, ABC):
    """Options of a sampler."""

    name: str
    """Key in the sampler table."""

    card: ClassVar[Card]
    """Its row in the table of methods."""

    batch_size: int = Field(default=120, ge=2)
    """Images in a batch, over all workers of a member; a batch of one would break batch normalisation."""

    @property
    def images_per_class(self) -> int | None:
        """Return how many images of each of its classes a batch holds, or None where that is not fixed."""
        return None

    @abstractmethod
    def build(self, labels: Int64, *, coarse: Int64 | None = None, seed: int) -> Sampler:
        """Return the sampler over the rows of ``labels`` ``(N,)``.

        Args:
            labels: the training classes, row by row.
            coarse: ``(N,)`` coarse classes, where the data set has them.
            seed: names the stream of draws.

        Raises:
            DataError: the labels cannot fill such a batch; the message gives a setting that fits.
        """
