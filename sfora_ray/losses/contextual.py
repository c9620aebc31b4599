"""Contextual similarity: rows are alike if they have the same neighbours in the batch.

Liao, Tsiligkaridis, Kulis: Supervised Metric Learning to Rank for Retrieval via Contextual Similarity
Optimization, ICML 2023. Equations 1 to 7: neighbourhoods of ``k`` by thresholding squared distances, overlap of
neighbourhoods and of their complements, query expansion over reciprocal ``k / 2`` neighbours, squared error to the
true similarity. To it come the margin contrast (appendix E.3, eq. 29) and a regulariser that draws the mean cosine
of all pairs to a constant.

A threshold has no gradient, so backwards it counts as a line of slope ``alpha``. ``k`` counts the row itself, and
must be the number of images of each class in a batch. Everything is a product of ``(B, B)`` matrices: time grows
with ``B**3``, memory with ``B**2``.

Three ways to weigh the terms are about; ``lam`` means something else in each:

* ``paper``: ``lam * context + (1 - lam) * contrast + gamma * regulariser``
* ``program_224``: ``(1 - lam) * context + lam * contrast + gamma * regulariser``
* ``program_256``: ``lam * context + (1 - lam - gamma) * contrast + gamma * regulariser``

Differences from the authors' programs: a row that has the whole batch as neighbours has no complement, where theirs
divide 0 by 0; here nothing is added. Theirs fix ``alpha`` at 10.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.errors import ConfigError
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.batch_cosines import margin_contrast, refuse_reversed_margins, same_class, unit_rows

Weighting = Literal["paper", "program_224", "program_256"]


class Contextual(Objective):
    """The contextual objective; it learns nothing itself."""

    def __init__(self, options: ContextualOptions) -> None:
        super().__init__()
        self.options = options

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss of ``(B, D)`` raw embeddings with ``(B,)`` labels.

        Raises:
            ConfigError: the batch holds fewer rows than a neighbourhood.
        """
        if len(labels) < self.options.k:
            raise ConfigError(
                f"objective contextual: a batch must hold at least k = {self.options.k} images, "
                f"got {len(labels)}. Raise the batch size or lower loss.k."
            )
        with torch.autocast(embeddings.device.type, enabled=False):
            rows = unit_rows(embeddings)
            return self._loss(rows @ rows.T, same_class(labels))

    def _loss(self, cosines: Tensor, same: Tensor) -> Tensor:
        options = self.options
        context_weight, contrast_weight = options.weights
        similarity = contextual_similarity(cosines, k=options.k, epsilon=options.epsilon, alpha=options.alpha)
        contrast = margin_contrast(
            cosines, same, positive_margin=options.positive_margin, negative_margin=options.negative_margin
        )
        regulariser = (cosines.mean() - options.target_similarity).square()
        context = context_error(similarity, same)
        return context_weight * context + contrast_weight * contrast + options.gamma * regulariser


def contextual_similarity(cosines: Tensor, *, k: int, epsilon: float, alpha: float) -> Tensor:
    """Return the ``(B, B)`` symmetric contextual similarity, within ``[0, 1]``.

    Args:
        cosines: ``(B, B)``.
        k: neighbours of a row, itself included.
        epsilon: how much farther than the k-th a neighbour may be, in squared distance.
        alpha: slope that stands for a threshold's gradient.
    """
    distances = (2 - 2 * cosines).clamp(min=0)
    near = _neighbours(distances, k, epsilon=epsilon, alpha=alpha)
    far = 1 - near
    shared = 0.5 * (_overlap(near) + _overlap(far)) * near
    nearest = _neighbours(distances, k // 2, epsilon=epsilon, alpha=alpha)
    reciprocal = nearest * nearest.T
    # Unlike the two normalisers in _overlap, this one lets the gradient through, as in the authors' programs.
    expanded = (reciprocal @ shared) / reciprocal.sum(dim=1, keepdim=True)
    return 0.5 * (expanded + expanded.T)


def context_error(similarity: Tensor, same: Tensor) -> Tensor:
    """Return the squared error of ``(B, B)`` similarities to the classes, over all pairs of different rows / B**2."""
    itself = torch.eye(len(same), dtype=torch.bool, device=same.device)
    errors = (same.to(similarity.dtype) - similarity).square().masked_fill(itself, 0.0)
    return errors.mean()


def _neighbours(distances: Tensor, k: int, *, epsilon: float, alpha: float) -> Tensor:
    """Return ``(B, B)`` 0 or 1: whether the column is among the row's ``k`` nearest, or at most epsilon farther."""
    reach = distances.detach().topk(k, largest=False).values[:, -1:]  # (B, 1)
    closeness = epsilon - distances
    return (closeness >= -reach).to(distances.dtype) + alpha * (closeness - closeness.detach())


def _overlap(members: Tensor) -> Tensor:
    """Return what share of each row's set the column's set holds; 0 for an empty set."""
    sizes = members.detach().sum(dim=1, keepdim=True).clamp(min=1)  # (B, 1)
    return (members @ members.T) / sizes


class ContextualOptions(LossOptions):
    """Options of the contextual loss; the defaults are the paper's for Cars-196 and SOP."""

    card: ClassVar[Card] = Card(
        title="Contextual similarity",
        paper="Liao, Tsiligkaridis, Kulis, ICML 2023",
        checked="reference values of the authors' programs (each term, both totals, gradients), slow loops",
        differences="a row without non-neighbours adds nothing instead of 0 / 0",
    )
    needs_positives: ClassVar[bool] = True

    name: Literal["contextual"] = "contextual"
    k: int = Field(default=4, ge=2)
    """Neighbours of a row, itself included; even, and equal to the images of each class in a batch."""
    epsilon: float = Field(default=0.05, ge=0)
    """How much farther than the k-th a neighbour may be, in squared distance."""
    weighting: Weighting = "paper"
    """How ``lam`` and ``gamma`` weigh the three terms: as in the paper, or in the authors' program for 224 or 256."""
    lam: float = Field(default=0.8, ge=0, le=1)
    """The weight of the contextual term (of the contrast in ``program_224``)."""
    gamma: float = Field(default=0.1, ge=0)
    """The weight of the regulariser."""
    target_similarity: float = Field(default=0.3, ge=-1, le=1)
    """What the regulariser draws the mean cosine of all pairs to."""
    positive_margin: float = Field(default=0.75, ge=-1, le=1)
    """Cosine that positives should reach."""
    negative_margin: float = Field(default=0.6, ge=-1, le=1)
    """Cosine that negatives should not exceed."""
    alpha: float = Field(default=10.0, gt=0)
    """Slope that stands for a threshold's gradient; it acts on the contextual term alone."""

    @model_validator(mode="after")
    def _margins_are_in_order(self) -> ContextualOptions:
        refuse_reversed_margins(positive=self.positive_margin, negative=self.negative_margin)
        return self

    @model_validator(mode="after")
    def _no_weight_is_negative(self) -> ContextualOptions:
        if self.weighting == "program_256" and self.lam + self.gamma > 1:
            raise ValueError(
                f"lam ({self.lam}) and gamma ({self.gamma}) must not exceed 1 together where weighting is "
                "'program_256', for the contrast gets the rest"
            )
        return self

    @property
    def weights(self) -> tuple[float, float]:
        """Return the weights of the contextual term and of the contrast."""
        if self.weighting == "program_224":
            return 1 - self.lam, self.lam
        rest = 1 - self.lam
        return self.lam, rest - self.gamma if self.weighting == "program_256" else rest

    def batch_problem(self, batch_size: int, samples_per_class: int | None) -> str | None:  # noqa: ARG002
        """Return why ``k`` does not fit such a batch and the way out, or None."""
        if self.k % 2:
            return f"loss.k must be even, for k / 2 neighbours must be reciprocal, got {self.k}. Use {self.k + 1}"
        if samples_per_class is None:
            return (
                f"loss.name 'contextual' needs exactly k = {self.k} images of each class in a batch, but the sampler "
                "does not fix how many there are. Use sampler.name 'per_class'"
            )
        if samples_per_class != self.k:
            change = "Use" if samples_per_class % 2 else f"Change loss.k to {samples_per_class}, or use"
            return (
                f"loss.k must equal the images of each class in a batch, {samples_per_class}, got {self.k}. "
                f"{change} sampler.name 'per_class' with samples_per_class {self.k}"
            )
        return None

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Contextual:  # noqa: ARG002
        """Make the objective; it has no parameters, so the sizes do not matter."""
        return Contextual(self)
