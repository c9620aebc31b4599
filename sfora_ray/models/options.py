"""What a model is made of, and how it is made."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, model_validator

from sfora_ray.models.conv4 import Conv4Options
from sfora_ray.models.embedder import Embedder
from sfora_ray.models.pooling import PoolingName
from sfora_ray.models.resnet import ResNetOptions
from sfora_ray.models.timm_network import TimmOptions
from sfora_ray.options import Options

AnyBackbone = Annotated[Conv4Options | ResNetOptions | TimmOptions, Field(discriminator="name")]


class ProjectorOptions(Options):
    """A linear layer after the embedding that the losses see and retrieval does not."""

    dim: int = Field(ge=1, le=65536)
    """Width of what the losses see."""


class ModelOptions(Options):
    """Options of a member's network."""

    backbone: AnyBackbone = ResNetOptions()
    pooling: PoolingName = "avg_max"
    """How the feature map becomes one vector; ``avg_max`` is the sum of both."""
    pooling_k: int = Field(default=1, ge=1)
    """How many of the largest values of a channel `k_max` averages (ProxyNCA++)."""
    dim: int = Field(default=512, ge=1, le=65536)
    """Width of an embedding."""
    layer_norm: bool = False
    """Whether a LayerNorm without weights follows the head (HERD)."""
    frozen_batch_norm: bool = False
    """Whether the backbone's BatchNorm keeps the statistics it starts with."""
    projector: ProjectorOptions | None = None

    @model_validator(mode="after")
    def _k_has_a_pooling_that_reads_it(self) -> ModelOptions:
        if self.pooling_k != 1 and self.pooling != "k_max":
            raise ValueError(
                f"pooling_k is read by pooling 'k_max' alone, got {self.pooling_k} with pooling '{self.pooling}'. "
                "Leave it at 1, or set pooling to 'k_max'"
            )
        return self

    @property
    def training_dim(self) -> int:
        """Return the width of the rows that losses see."""
        return self.dim if self.projector is None else self.projector.dim


def build_embedder(options: ModelOptions, *, channels: int, generator: torch.Generator) -> Embedder:
    """Make the network for images of ``channels`` channels; all that is random comes from ``generator``.

    Raises:
        WeightsError: the backbone's weights are absent, damaged, or of another network.
    """
    return Embedder(
        options.backbone.build(channels=channels, generator=generator),
        pooling=options.pooling,
        pooling_k=options.pooling_k,
        dim=options.dim,
        layer_norm=options.layer_norm,
        frozen_batch_norm=options.frozen_batch_norm,
        projector_dim=options.projector.dim if options.projector else None,
        generator=generator,
    )


def weights_identity(options: ModelOptions) -> str:
    """Return what the backbone starts from: a name with the SHA-256 of the weights, or ``none``.

    Raises:
        WeightsError: the weights are absent.
    """
    return options.backbone.weights_identity()
