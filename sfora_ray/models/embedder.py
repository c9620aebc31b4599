"""The network of a member: backbone, pooling, a linear head, and what may follow it in training.

Head and normalisation follow the HERD protocol: a linear layer drawn with ``kaiming_normal`` (fan out), zero
bias, then a LayerNorm without weights. The projector is that of Liao, Tsiligkaridis, Kulis: Supervised Metric
Learning to Rank for Retrieval via Contextual Similarity Optimization, ICML 2023; only the loss sees it.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from sfora_ray.models.backbone import Backbone
from sfora_ray.models.pooling import PoolingName, pooling_of
from sfora_ray.parameters import ParameterGroup, split_by_decay


class Embedder(nn.Module):
    """Images to raw embeddings, which are not L2-normalised.

    Attributes:
        dim: width of an embedding.
        training_dim: width of what the losses see; the projector's, where there is one.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        pooling: PoolingName,
        pooling_k: int,
        dim: int,
        layer_norm: bool,
        frozen_batch_norm: bool,
        projector_dim: int | None,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.training_dim = projector_dim or dim
        self.pool = pooling_of(pooling, k=pooling_k)
        self.frozen_batch_norm = frozen_batch_norm
        self.backbone = backbone
        self.head = _linear(backbone.num_features, dim, bias=True, generator=generator)
        self.norm = nn.LayerNorm(dim, elementwise_affine=False) if layer_norm else nn.Identity()
        self.projector = (
            nn.Identity() if projector_dim is None else _linear(dim, projector_dim, bias=False, generator=generator)
        )
        self.train()

    def features(self, images: Tensor) -> Tensor:
        """Return the ``(B, F)`` pooled features of ``(B, C, H, W)`` images."""
        maps: Tensor = self.backbone(images)  # (B, F, h, w)
        return self.pool(maps)

    def project(self, features: Tensor) -> Tensor:
        """Return the ``(B, training_dim)`` rows that losses see of ``(B, F)`` pooled features."""
        projected: Tensor = self.projector(self.norm(self.head(features)))
        return projected

    def embed(self, images: Tensor) -> Tensor:
        """Return the ``(B, dim)`` raw embeddings of ``(B, C, H, W)`` images, without the projector."""
        embeddings: Tensor = self.norm(self.head(self.features(images)))
        return embeddings

    def forward(self, images: Tensor) -> Tensor:
        """Return the ``(B, training_dim)`` rows that losses see, in either mode."""
        return self.project(self.features(images))

    def train(self, mode: bool = True) -> Self:
        """Switch the mode; BatchNorm of a frozen backbone keeps its statistics in both.

        Only the statistics are frozen. Weights and biases of these layers still learn, as in the published
        programs, which unfreeze them at the end of warm-up.
        """
        super().train(mode)
        if self.frozen_batch_norm:
            for module in self.backbone.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self

    def parameter_groups(self, lr: float, head_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the backbone, which rests during warm-up, and the head with the projector, which do not."""
        heads = nn.ModuleList([self.head, self.norm, self.projector])
        return (
            *split_by_decay("backbone", self.backbone, lr, warms_up=False),
            *split_by_decay("head", heads, head_lr, warms_up=True),
        )


def _linear(inputs: int, outputs: int, *, bias: bool, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=bias, device="meta").to_empty(device="cpu")
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", generator=generator)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
