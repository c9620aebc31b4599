"""What losses of a whole batch share: its cosines, who is of whose class, and the margin contrast of both.

The contrast is the "contrastive loss" of the contextual paper (its appendix E.3) and the calibration loss of
ROADMAP (Ramzi et al., NeurIPS 2021): positives are pulled above one cosine, negatives pushed below another.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def unit_rows(embeddings: Tensor) -> Tensor:
    """Return ``(B, D)`` rows L2-normalised, in float64 if they come so and in float32 otherwise."""
    return F.normalize(embeddings if embeddings.dtype == torch.float64 else embeddings.float())


def same_class(labels: Tensor) -> Tensor:
    """Return ``(B, B)`` bool: whether two rows are of one class; a row is of its own."""
    return labels[:, None] == labels


def margin_contrast(cosines: Tensor, same: Tensor, *, positive_margin: float, negative_margin: float) -> Tensor:
    """Return the mean shortfall of too far positives plus the mean excess of too near negatives.

    Only violating pairs count in each mean; without any, that part is 0. A row is no pair with itself.

    Args:
        cosines: ``(B, B)``.
        same: ``(B, B)`` bool, as of :func:`same_class`.
        positive_margin: cosine that positives should reach.
        negative_margin: cosine that negatives should not exceed.
    """
    itself = torch.eye(len(same), dtype=torch.bool, device=same.device)
    shortfall = F.relu(positive_margin - cosines).masked_fill(~same | itself, 0.0)
    excess = F.relu(cosines - negative_margin).masked_fill(same, 0.0)
    return _mean_of_active(shortfall) + _mean_of_active(excess)


def _mean_of_active(terms: Tensor) -> Tensor:
    return terms.sum() / (terms > 0).sum().clamp(min=1)
