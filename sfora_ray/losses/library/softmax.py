"""Classification of cosines, from pytorch-metric-learning: normalized softmax and ArcFace.

Normalized softmax: Zhai, Wu: Classification is a Strong Baseline for Deep Metric Learning, BMVC 2019, and
Wang et al.: NormFace, ACM MM 2017. The layer norm of the former belongs to the embedder.

ArcFace: Deng, Guo, Xue, Zafeiriou: ArcFace, CVPR 2019, eq. 3; 28.6 degrees are its 0.5 radians. Beyond
180 degrees minus the margin the target's logit goes on falling along a line, as in the authors' program.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from pytorch_metric_learning.distances import CosineSimilarity, DotProductSimilarity
from pytorch_metric_learning.losses import ArcFaceLoss, NormalizedSoftmaxLoss
from pytorch_metric_learning.reducers import MeanReducer
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.weights import draw_normal, weight_group
from sfora_ray.parameters import ParameterGroup


class ClassifierSettings(LossOptions):
    """What every classifier of directions can be told about its class weights."""

    needs_positives: ClassVar[bool] = False

    init_std: float = Field(default=1.0, gt=0)
    """Spread of the initial weights. Only directions count, but under Adam longer weights turn more slowly."""
    weights_lr: float = Field(default=1e-2, ge=0)
    """Absolute learning rate of the class weights."""
    weights_decay: bool = False
    """Whether weight decay reaches the class weights."""


class Classifier(Objective):
    """A softmax loss of the library over one learned direction for each training class."""

    def __init__(
        self, options: ClassifierSettings, loss: NormalizedSoftmaxLoss | ArcFaceLoss, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.options = options
        self.loss = loss
        draw_normal(self.weights, std=options.init_std, generator=generator)

    @property
    def weights(self) -> nn.Parameter:
        """The ``(D, C)`` class weights, of any length."""
        weights: nn.Parameter = self.loss.W
        return weights

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss, computed in the weights' precision whatever autocast says."""
        with torch.autocast(embeddings.device.type, enabled=False):
            loss: Tensor = self.loss(embeddings.to(self.weights.dtype), labels)
            return loss

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the class weights at their own absolute rate; ``base_lr`` does not reach them."""
        del base_lr
        options = self.options
        return weight_group(f"{options.name}.weights", self.weights, options.weights_lr, decays=options.weights_decay)


class BoundedArcFace(ArcFaceLoss):  # type: ignore[misc]  # the library has no types
    """ArcFace whose gradient stays finite where a row meets its class weight exactly."""

    def get_angles(self, cosine_of_target_classes: Tensor) -> Tensor:
        """Return ``(B,)`` angles of cosines kept a rounding step away from 1, where their slope has no end."""
        step = torch.finfo(cosine_of_target_classes.dtype).eps
        return torch.acos(cosine_of_target_classes.clamp(step - 1, 1 - step))


class NormalizedSoftmaxOptions(ClassifierSettings):
    """Options of normalized softmax."""

    card: ClassVar[Card] = Card(
        title="Normalized softmax",
        paper="Zhai, Wu, BMVC 2019",
        checked="reference values of the library, gradients included",
        differences="weights drawn from a passed generator",
    )

    name: Literal["normalized_softmax"] = "normalized_softmax"
    temperature: float = Field(default=0.05, gt=0)
    """Divides the cosines."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Classifier:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes."""
        loss = NormalizedSoftmaxLoss(
            num_classes=num_classes,
            embedding_size=dim,
            temperature=self.temperature,
            weight_init_func=nn.init.zeros_,
            weight_regularizer=None,
            embedding_regularizer=None,
            distance=DotProductSimilarity(normalize_embeddings=True, collect_stats=False),
            reducer=MeanReducer(collect_stats=False),
            collect_stats=False,
        )
        return Classifier(self, loss, generator)


class ArcFaceOptions(ClassifierSettings):
    """Options of ArcFace."""

    card: ClassVar[Card] = Card(
        title="ArcFace",
        paper="Deng, Guo, Xue, Zafeiriou, CVPR 2019, eq. 3",
        checked="reference values of the library, gradients included, and slow loops",
        differences="weights drawn from a passed generator; finite gradient at an angle of 0",
    )

    name: Literal["arcface"] = "arcface"
    margin_degrees: float = Field(default=28.6, ge=0, lt=180)
    """Added to the angle between a row and its class weight, in degrees."""
    scale: float = Field(default=64.0, gt=0)
    """Multiplies the cosines."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Classifier:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes."""
        loss = BoundedArcFace(
            num_classes=num_classes,
            embedding_size=dim,
            margin=self.margin_degrees,
            scale=self.scale,
            weight_init_func=nn.init.zeros_,
            weight_regularizer=None,
            embedding_regularizer=None,
            distance=CosineSimilarity(collect_stats=False),
            reducer=MeanReducer(collect_stats=False),
            collect_stats=False,
        )
        return Classifier(self, loss, generator)
