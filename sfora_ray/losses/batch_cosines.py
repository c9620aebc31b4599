"""What losses of a whole batch share: its cosines, who is of whose class, and the margin contrast of both.

The contrast is the "contrastive loss" of the contextual paper (its appendix E.3) and the calibration loss of
ROADMAP (Ramzi et al., NeurIPS 2021): positives are pulled above one cosine, negatives pushed below another.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sfora_ray.precision import widened


def unit_rows(embeddings: Tensor) -> Tensor:
    """Return ``(B, D)`` rows L2-normalised, in float64 if they come so and in float32 otherwise."""
    return F.normalize(widened(embeddings))


def same_class(labels: Tensor) -> Tensor:
    """Return ``(B, B)`` bool: whether two rows are of one class; a row is of its own."""
    return labels[:, None] == labels


def refuse_reversed_margins(*, positive: float, negative: float) -> None:
    """Raise ValueError where positives need be less alike than negatives may be; both margins are cosines."""
    if positive < negative:
        raise ValueError(
            "margins are similarities, and positive_margin must not be below negative_margin, "
            f"got {positive:g} and {negative:g}. Common are 0.9 and 0.6"
        )


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
