"""Average precision of a batch with a soft idea of "ranks ahead of": the common part of Smooth-AP and SupAP.

A query's own row is in its list, and among its positives, as in the authors' programs. Only the rows of positives
of the ``(B, B, B)`` comparison are formed: one line for each (query, positive), so any number of classes and of
images a class will do.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Ahead = Callable[[Tensor, Tensor], Tensor]
"""Maps ``(P, B)`` cosine leads over a positive, and whether each row is a positive too, to degrees of being ahead."""


def mean_soft_precision(cosines: Tensor, same: Tensor, ahead: Ahead) -> Tensor:
    """Return the mean over queries of their soft average precision.

    Args:
        cosines: ``(B, B)``.
        same: ``(B, B)`` bool: whether two rows are of one class, the diagonal included.
        ahead: how much a row counts as ranked ahead of a positive.
    """
    queries, positives = same.nonzero(as_tuple=True)  # (P,), (P,)
    leads = cosines[queries] - cosines[queries, positives][:, None]  # (P, B)
    relevant = same[queries]  # (P, B)
    itself = torch.arange(len(same), device=same.device) == positives[:, None]  # (P, B)
    degrees = ahead(leads, relevant).masked_fill(itself, 0.0)
    rank = 1 + degrees.sum(dim=1)  # (P,)
    rank_among_positives = 1 + (degrees * relevant).sum(dim=1)  # (P,)
    positives_of_query = relevant.sum(dim=1)  # (P,)
    return (rank_among_positives / rank / positives_of_query).sum() / len(same)
