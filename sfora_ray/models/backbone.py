"""The contract of a backbone, and random starts that come from a passed generator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import torch
from torch import Tensor, nn

from sfora_ray.options import Options


class Backbone(nn.Module, ABC):
    """A network without its classifier: images in, feature maps out."""

    num_features: int
    """Channels of the feature map."""

    @abstractmethod
    def forward(self, images: Tensor) -> Tensor:
        """Return the ``(B, num_features, h, w)`` feature map of ``(B, C, H, W)`` images."""


class BackboneOptions(Options, ABC):
    """Options of a backbone; ``name`` is its key in the backbone table."""

    @abstractmethod
    def build(self, *, channels: int, generator: torch.Generator) -> Backbone:
        """Make the backbone for images of ``channels`` channels.

        Raises:
            WeightsError: its weights are absent, damaged, or of another network.
        """

    def without_weights(self) -> Self:
        """Return the same network with a random start, for when its weights are loaded from elsewhere."""
        return self.model_copy(update={"weights": "none"} if "weights" in type(self).model_fields else {})

    @abstractmethod
    def weights_identity(self) -> str:
        """Return what the network starts from, with the SHA-256 of the file, or ``none`` for a random start.

        Raises:
            WeightsError: the weights are absent.
        """


@contextmanager
def seeded_by(generator: torch.Generator) -> Iterator[None]:
    """Let third-party constructors draw on the CPU from ``generator``; the global stream is put back."""
    seed = int(torch.randint(2**62, (1,), generator=generator))
    state = torch.get_rng_state()
    try:
        torch.default_generator.manual_seed(seed)
        yield
    finally:
        torch.set_rng_state(state)


def as_three_channels(images: Tensor) -> Tensor:
    """Show one-channel images to a network made for three; others are left alone."""
    return images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
