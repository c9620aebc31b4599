"""Conv4: four small convolution blocks for small images, always started at random.

The usual few-shot network (Vinyals et al., Matching Networks, NeurIPS 2016; Snell et al., Prototypical
Networks, NeurIPS 2017): 3x3 filters, BatchNorm, ReLU and a halving of the resolution, four times. There every
block has 64 filters; here they double from block to block by default, which costs the same arithmetic and
leaves a last map that is not narrower than the embedding. ``widths: [64, 64, 64, 64]`` is the original.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from sfora_ray.models.backbone import Backbone, BackboneOptions, seeded_by

Width = Annotated[int, Field(ge=1, le=8192)]
Widths = tuple[Width, Width, Width, Width]


class Conv4(Backbone):
    """Four blocks; a side of 28 to 64 pixels becomes 1 to 4."""

    def __init__(self, channels: int, widths: Widths, generator: torch.Generator) -> None:
        super().__init__()
        self.num_features = widths[-1]
        with seeded_by(generator):
            self.blocks = nn.Sequential(*(_block(a, b) for a, b in pairwise((channels, *widths))))

    def forward(self, images: Tensor) -> Tensor:
        """Return the ``(B, widths[-1], H // 16, W // 16)`` feature map."""
        features: Tensor = self.blocks(images)
        return features


def _block(inputs: int, outputs: int) -> nn.Sequential:
    # BatchNorm follows and removes the mean, so the convolution has no bias.
    convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True), nn.MaxPool2d(2))


class Conv4Options(BackboneOptions):
    """Options of Conv4."""

    name: Literal["conv4"] = "conv4"
    widths: Widths = (32, 64, 128, 256)
    """Filters of the four blocks."""

    def build(self, *, channels: int, generator: torch.Generator) -> Conv4:
        """Make the network; every weight is drawn from ``generator``."""
        return Conv4(channels, self.widths, generator)

    def weights_identity(self) -> str:
        """Return ``none``: the start is always random."""
        return "none"
