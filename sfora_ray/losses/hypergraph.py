"""The pure parts of HIST: class distances, the semantic hypergraph of a batch, and its propagation matrix.

Lim, Yun, Park, Choi: Hypergraph-Induced Semantic Tuplet Loss for Deep Metric Learning, CVPR 2022.

The authors' program forms the ``(B, C, D)`` tensor of all squared differences. Here the square is expanded,
so that nothing is larger than ``(B, C)`` or ``(C, D)``: at 11,318 classes this saves gigabytes and about 60
times the time.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def clip_published(log_variances: Tensor) -> Tensor:
    """Clip log-variances to ``[0, 6]``; the gradient is zero at and beyond both ends, as published."""
    return F.relu6(log_variances)


def clip_reviving(log_variances: Tensor) -> Tensor:
    """Clip log-variances to ``[0, 6]``; beyond an end, a gradient that leads back inside still passes."""
    clipped: Tensor = _RevivingClip.apply(log_variances)
    return clipped


class _RevivingClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.save_for_backward(values)
        return F.relu6(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (values,) = ctx.saved_tensors
        (gradient,) = gradients
        # Descent moves against the gradient: a positive one lowers the value.
        leads_outside = ((values <= 0) & (gradient > 0)) | ((values >= 6) & (gradient < 0))
        return gradient.masked_fill(leads_outside, 0.0)


def class_distances(embeddings: Tensor, means: Tensor, log_variances: Tensor) -> Tensor:
    """Return ``(B, C)`` squared distances of rows to class means, features divided by the class's variances.

    Args:
        embeddings: ``(B, D)`` L2-normalised rows.
        means: ``(C, D)`` class means of any length; they are L2-normalised here.
        log_variances: ``(C, D)`` clipped log-variances.
    """
    centres = F.normalize(means)
    precisions = torch.exp(-log_variances)
    weighted = centres * precisions
    squares = embeddings.square() @ precisions.T  # (B, D) x (D, C) -> (B, C)
    products = embeddings @ weighted.T  # (B, C)
    offsets = (centres * weighted).sum(dim=1)  # (C,)
    return squares - 2 * products + offsets


def distribution_loss(distances: Tensor, labels: Tensor, *, tau: float) -> Tensor:
    """Return the mean negative log-probability of the true class under ``softmax(-tau * distances)``.

    The authors' program takes the logarithm of the softmax and leaves out rows whose probability underflows
    to zero, the very rows that are most wrong; ``log_softmax`` keeps them.
    """
    return F.cross_entropy(-tau * distances, labels)


def incidence(distances: Tensor, labels: Tensor, *, alpha: float) -> Tensor:
    """Return the ``(B, E)`` incidence of rows to the ``E`` classes present, in ascending order of class.

    A row belongs fully to its own class and by ``exp(-alpha * distance)`` to each other class in the batch.
    The gradient flows through the soft memberships.
    """
    present = torch.unique(labels)  # (E,)
    own = labels[:, None] == present  # (B, E)
    return torch.where(own, 1.0, torch.exp(-alpha * distances[:, present]))


def propagation(memberships: Tensor) -> Tensor:
    """Return the ``(B, B)`` matrix ``Dv^-1/2 H De^-1 H' Dv^-1/2`` of an incidence ``H``, edge weights 1.

    Every degree is at least one, as each row is a full member of its own class and each class has a row.
    """
    row_scales = memberships.sum(dim=1).rsqrt()  # (B,)
    scaled = row_scales[:, None] * memberships
    return (scaled / memberships.sum(dim=0)) @ scaled.T  # (B, E) x (E, B) -> (B, B)
