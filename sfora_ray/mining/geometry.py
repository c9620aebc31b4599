"""How far apart the rows of a batch are, for choosing among them; no gradient flows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sfora_ray.precision import widened
from sfora_ray.tuples import Pairs, pairs_within


def unit_rows(embeddings: Tensor) -> Tensor:
    """Return ``(B, D)`` L2-normalised rows without history, in float32 at least."""
    return F.normalize(widened(embeddings.detach()))


def unit_distances(embeddings: Tensor) -> Tensor:
    """Return the ``(B, B)`` Euclidean distances of the normalised rows."""
    with torch.autocast(embeddings.device.type, enabled=False):
        rows = unit_rows(embeddings)
        # Above 25 rows the default is a matrix product, which puts duplicates at a distance of rounding noise.
        return torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")


def unit_cosines(embeddings: Tensor) -> Tensor:
    """Return the ``(B, B)`` cosines of the rows."""
    with torch.autocast(embeddings.device.type, enabled=False):
        rows = unit_rows(embeddings)
        return rows @ rows.T


def candidates_or_all(labels: Tensor, candidates: Pairs | None) -> Pairs:
    """Return the candidates, or all pairs of different rows."""
    return pairs_within(labels) if candidates is None else candidates
