"""Cross-batch memory: rows of past batches are compared with, after a warm-up without them.

Wang, Zhang, Huang, Scott: Cross-Batch Memory for Embedding Learning, CVPR 2020. As a network learns, embeddings
drift slowly, so rows of some steps ago still serve as partners, and far more pairs are at hand than in one batch.

A batch enters the queue, without its gradient, before the loss is computed, so a row finds partners in its own
batch too; only the pair of a row with its own copy is left out. The authors' program adds the loss within the batch
to that against the queue (``batch_weight: 1``); pytorch-metric-learning, which the default follows, does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.losses import LossOptions
from sfora_ray.recipes.base import Ingredients, LossTerms, Seen, Turn
from sfora_ray.recipes.of_tuples import TupleRecipe, TupleRecipeOptions
from sfora_ray.tuples import Pairs, pairs_between


class Queue(nn.Module):
    """The last rows and their labels in a ring.

    Attributes:
        rows: ``(capacity, D)``; zeros where nothing was written yet.
        labels: ``(capacity,)``.
        cursor: where the next row goes.
        full: whether the cursor has passed the end.
    """

    rows: Tensor
    labels: Tensor
    cursor: Tensor
    full: Tensor

    def __init__(self, capacity: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(capacity, dim))
        self.register_buffer("labels", torch.zeros(capacity, dtype=torch.int64))
        self.register_buffer("cursor", torch.tensor(0))
        self.register_buffer("full", torch.tensor(False))

    @torch.no_grad()
    def push(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Write ``(B, D)`` rows with their ``(B,)`` labels over the oldest; return the ``(B,)`` places they took."""
        capacity = len(self.rows)
        assert len(rows) <= capacity, "a batch must fit into the memory"
        end = self.cursor + len(rows)
        places = (self.cursor + torch.arange(len(rows), device=rows.device)) % capacity
        self.rows[places] = rows.detach().to(self.rows.dtype)
        self.labels[places] = labels
        self.full |= end >= capacity
        self.cursor.copy_(end % capacity)
        return places

    def filled(self) -> tuple[Tensor, Tensor]:
        """Return copies of the ``(R, D)`` rows written so far and of their ``(R,)`` labels."""
        count = len(self.rows) if self.full else int(self.cursor)
        return self.rows[:count].clone(), self.labels[:count].clone()


def without_copies(pairs: Pairs, places: Tensor) -> Pairs:
    """Return the pairs of a batch with the queue, less those of row ``i`` with its own copy at ``places[i]``."""
    others = pairs.positives != places[pairs.anchors]
    return Pairs(pairs.anchors[others], pairs.positives[others], pairs.negative_anchors, pairs.negatives)


class Memory(TupleRecipe):
    """The objective between the batch and a queue of past rows."""

    steps: Tensor

    def __init__(self, options: MemoryOptions, made: Ingredients) -> None:
        super().__init__(made)
        self.options = options
        self.queue = Queue(options.capacity, made.embedder.training_dim)
        self.register_buffer("steps", torch.tensor(0))

    def turns(self, images: Tensor, labels: Tensor) -> Iterator[Turn]:
        """Yield the loss within the whole batch during warm-up; after it, the loss between batch and queue."""
        rows, classes = self.rows(self.student, images), self.gather(labels)
        warm = int(self.steps) >= self.options.warmup_steps
        total = self._with_queue(rows, classes) if warm else self.objective(rows, classes)
        self.steps += 1
        yield Turn(LossTerms(total, {"objective": total.detach()}), Seen(images, rows))

    def _with_queue(self, rows: Tensor, classes: Tensor) -> Tensor:
        places = self.queue.push(rows, classes)
        partners, partner_classes = self.queue.filled()
        pairs = without_copies(pairs_between(classes, partner_classes), places)
        loss = self.objective.compare(rows, partners, pairs)
        if self.options.batch_weight:
            loss = loss + self.options.batch_weight * self.objective(rows, classes)
        return loss


class MemoryOptions(TupleRecipeOptions):
    """Options of cross-batch memory."""

    card: ClassVar[Card] = Card(
        title="Cross-batch memory (XBM)",
        paper="Wang, Zhang, Huang, Scott, CVPR 2020",
        checked="reference values of pytorch-metric-learning: losses, gradients, queue, cursor, step by step",
        differences="the authors' program adds the loss within the batch: batch_weight 1",
    )

    name: Literal["memory"] = "memory"
    capacity: int = Field(default=1024, ge=1, le=10_000_000)
    """Rows in the queue; at least a batch."""
    warmup_steps: NonNegativeInt = 1000
    """First steps that neither fill nor read the queue; 1,000 as in the authors' sample configuration."""
    batch_weight: float = Field(default=0.0, ge=0)
    """Weight of the loss within the batch beside that against the queue (the authors' program: 1)."""

    def problem(self, loss: LossOptions, *, dim: int, batch_size: int) -> str | None:
        """Return why the objective or the batch does not fit, or None."""
        if batch_size > self.capacity:
            return (
                f"capacity ({self.capacity}) must not be below sampler.batch_size ({batch_size}), for a whole "
                f"batch enters the memory at once. Use {batch_size} or more"
            )
        return super().problem(loss, dim=dim, batch_size=batch_size)

    def length_problem(self, steps: int) -> str | None:
        """Return that the memory would never be used, or None."""
        if self.warmup_steps < steps:
            return None
        return (
            f"warmup_steps ({self.warmup_steps}) must be below the {steps} steps of the whole training, or the "
            f"memory is never used. Use {steps // 10} or so, or train longer"
        )

    def build(self, made: Ingredients) -> Memory:
        """Compose the recipe."""
        return Memory(self, made)
