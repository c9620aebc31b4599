"""Embed a table and score retrieval within it."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.config.pack import EvaluationOptions
from sfora_ray.data.base import ImageTable
from sfora_ray.data.loader import OnUnreadable, test_batches
from sfora_ray.errors import NonFiniteError
from sfora_ray.retrieval import score
from sfora_ray.training.parts import Parts
from sfora_ray.training.precision import autocast_for

# A network that has hardly learnt may show .99 and still rank well; beyond this every image is one point.
_COLLAPSED_ABOVE = 0.999


def embed_table(parts: Parts, table: ImageTable, on_unreadable: OnUnreadable | None = None) -> EmbeddingTable:
    """Return the L2-normalised student embeddings ``(N, D)`` of a table, under the test transform.

    Args:
        parts: the member.
        table: any split.
        on_unreadable: told of images in whose place another of their class is embedded; for what is not scored.

    Raises:
        DataError: an image cannot be read.
        NonFiniteError: an embedding is NaN or infinite; names the image.
    """
    training, device = parts.config.training, parts.worker.device
    autocast = autocast_for(training.precision, device)
    parts.recipe.eval()
    rows: list[np.ndarray] = []
    with torch.inference_mode():
        for images, _ in test_batches(
            table,
            parts.config.input.test_transform(),
            batch_size=parts.config.evaluation.batch_size,
            num_workers=training.loader_workers,
            pin_memory=device.type == "cuda",
            on_unreadable=on_unreadable,
        ):
            with autocast():
                embeddings = parts.embedder.embed(parts.to_device(images))  # (B, D)
            rows.append(functional.normalize(embeddings.float(), dim=1).cpu().numpy())
    result = EmbeddingTable(np.array(table.ids), table.labels, np.concatenate(rows), table.coarse_labels)
    _refuse_nonfinite(result)
    return result


def _refuse_nonfinite(table: EmbeddingTable) -> None:
    bad = np.flatnonzero(~np.isfinite(table.embeddings).all(axis=1))
    if len(bad):
        raise NonFiniteError(
            f"image {table.ids[bad[0]]}: its embedding is not finite, as are {len(bad)} in all. "
            "The network has diverged: lower the learning rates or use precision fp32."
        )


def retrieval_metrics(
    table: EmbeddingTable, options: EvaluationOptions, device: torch.device, *, coarse: bool = True
) -> dict[str, float]:
    """Return the retrieval metrics of a table by their keys; NMI only where asked for.

    Args:
        table: any split.
        options: how to score.
        device: where to score.
        coarse: also score on the coarse classes, of a table that has them.
    """
    scores = score(
        table.embeddings,
        table.labels,
        coarse=table.coarse_labels if coarse else None,
        singletons=options.singletons,
        nmi=options.nmi,
        device=str(device),
    )
    return scores.metrics()


def mean_pairwise_cosine(table: EmbeddingTable) -> float:
    """Return the mean cosine over all pairs of different rows."""
    total = table.embeddings.sum(axis=0, dtype=np.float64)
    rows = len(table.embeddings)
    return float((total @ total - rows) / (rows * (rows - 1))) if rows > 1 else 0.0


def collapse_warning(table: EmbeddingTable) -> str | None:
    """Return a warning if the embeddings have fallen together."""
    cosine = mean_pairwise_cosine(table)
    if cosine <= _COLLAPSED_ABOVE:
        return None
    return f"collapsed: the mean cosine of two test images is {cosine:.5f}, so these numbers mean nothing"
