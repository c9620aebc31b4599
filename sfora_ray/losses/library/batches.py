"""Objectives of a whole batch, from pytorch-metric-learning: FastAP and N-pairs.

FastAP: Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019: average precision from
soft histograms of squared distances, the query itself left out; anchors without a positive are left out of the mean.

N-pairs: Sohn: Improved Deep Metric Learning with Multi-class N-pair Loss Objective, NeurIPS 2016. One
anchor and one positive of each class, the first two rows of it in the batch, against the positives of the others.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.losses import FastAPLoss, NPairsLoss
from pytorch_metric_learning.reducers import MeanReducer
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.library.common import ExactDistance
from sfora_ray.precision import widened


class LibraryBatch(Objective):
    """A loss of the library that decides itself what is compared, and learns nothing."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss, in float32 at least; 0 with a gradient of 0 where no class has two rows."""
        with torch.autocast(embeddings.device.type, enabled=False):
            loss: Tensor = self.loss(widened(embeddings), labels)
            return loss


class FastApOptions(LossOptions):
    """Options of FastAP."""

    card: ClassVar[Card] = Card(
        title="FastAP",
        paper="Cakir, He, Xia, Kulis, Sclaroff, CVPR 2019",
        checked="reference values of the library, gradients included, and slow loops",
        differences="plain batches; the authors' minibatch of two super-classes is the sampler 'hierarchical'",
    )
    needs_positives: ClassVar[bool] = True

    name: Literal["fast_ap"] = "fast_ap"
    bins: int = Field(default=10, ge=1, le=1000)
    """Bins of the histogram of squared distances between 0 and 4."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> LibraryBatch:
        """Make the objective; it learns nothing itself."""
        del dim, num_classes, generator
        return LibraryBatch(
            FastAPLoss(
                num_bins=self.bins,
                distance=ExactDistance(power=2),
                reducer=MeanReducer(collect_stats=False),
                embedding_regularizer=None,
                collect_stats=False,
            )
        )


class NPairsOptions(LossOptions):
    """Options of N-pairs."""

    card: ClassVar[Card] = Card(
        title="N-pairs",
        paper="Sohn, NeurIPS 2016",
        checked="reference values of the library, gradients included, and slow loops",
        differences="rows normalised unless 'normalize: false'; no penalty on their length; the order within a class "
        "matters: its first two rows are used, further ones are not",
    )
    needs_positives: ClassVar[bool] = True

    name: Literal["n_pairs"] = "n_pairs"
    normalize: bool = True
    """Cosines (the library) or dot products of the embedder's output (the paper)."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> LibraryBatch:
        """Make the objective; it learns nothing itself."""
        del dim, num_classes, generator
        return LibraryBatch(
            NPairsLoss(
                distance=DotProductSimilarity(normalize_embeddings=self.normalize, collect_stats=False),
                reducer=MeanReducer(collect_stats=False),
                embedding_regularizer=None,
                collect_stats=False,
            )
        )
