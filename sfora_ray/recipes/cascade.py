"""Cascaded mining over slices of the embedding.

Yuan, Yang, Zhang: Hard-Aware Deeply Cascaded Embedding, ICCV 2017. The row is cut into slices. Each slice has a loss
of its own, of its hardest pairs among those that the slice before it kept, and the losses are summed. The paper
cascades networks of growing depth; here, as in the training-composition document, slices of one embedding.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.losses import LossOptions
from sfora_ray.mining import HdcOptions
from sfora_ray.recipes.base import Ingredients, LossTerms, Seen, Turn
from sfora_ray.recipes.of_tuples import TupleRecipe, TupleRecipeOptions
from sfora_ray.tuples import Pairs

Fraction = Annotated[float, Field(gt=0, le=1)]


class Cascade(TupleRecipe):
    """The objective on slices, each with its pairs out of those of the slice before."""

    def __init__(self, options: CascadeOptions, made: Ingredients) -> None:
        super().__init__(made)
        self.widths = list(options.widths(made.embedder.training_dim))
        self.miners = [HdcOptions(fraction=fraction).build() for fraction in options.fractions]

    def turns(self, images: Tensor, labels: Tensor) -> Iterator[Turn]:
        """Yield the sum of the slices' losses, of the whole batch."""
        rows, classes = self.rows(self.student, images), self.gather(labels)
        losses = [self.objective.compare(part, part, pairs) for part, pairs in self.stages(rows, classes)]
        total = torch.stack(losses).sum()
        yield Turn(LossTerms(total, {"objective": total.detach()}), Seen(images, rows))

    def stages(self, rows: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Pairs]]:
        """Yield each ``(B, d)`` slice of ``(B, D)`` rows with the pairs that it keeps."""
        pairs: Pairs | None = None
        for part, miner in zip(torch.split(rows, self.widths, dim=1), self.miners, strict=True):
            kept = miner(part, labels, pairs)
            assert isinstance(kept, Pairs)
            pairs = kept
            yield part, kept


class CascadeOptions(TupleRecipeOptions):
    """Options of cascaded mining."""

    card: ClassVar[Card] = Card(
        title="Hard-aware cascade (HDC) over embedding slices",
        paper="Yuan, Yang, Zhang, ICCV 2017",
        checked="reference values of pytorch-metric-learning: kept pairs, losses, gradient",
        differences="slices of one embedding instead of networks of growing depth",
    )

    name: Literal["cascade"] = "cascade"
    fractions: tuple[Fraction, ...] = Field(default=(1.0, 0.5, 0.5), min_length=1)
    """Share of the pairs at hand, the hardest, that each slice keeps."""
    slices: tuple[PositiveInt, ...] | None = None
    """Widths of the slices, which sum to that of the row; as even as can be where absent."""

    @model_validator(mode="after")
    def _a_fraction_for_each_slice(self) -> CascadeOptions:
        if self.slices is not None and len(self.slices) != len(self.fractions):
            raise ValueError(
                f"slices ({len(self.slices)}) and fractions ({len(self.fractions)}) must be equally many, one "
                "fraction for each slice"
            )
        return self

    def widths(self, dim: int) -> tuple[int, ...]:
        """Return the width of each slice of a ``dim``-wide row."""
        if self.slices is not None:
            return self.slices
        ends = [dim * stage // len(self.fractions) for stage in range(len(self.fractions) + 1)]
        return tuple(end - start for start, end in pairwise(ends))

    def problem(self, loss: LossOptions, *, dim: int, batch_size: int) -> str | None:
        """Return why the slices or the objective do not fit, or None."""
        widths = self.widths(dim)
        if sum(widths) != dim:
            return f"slices {list(widths)} must sum to the row's width {dim}, got {sum(widths)}. Change one of them"
        if 0 in widths:
            return (
                f"fractions makes {len(widths)} slices, but a row is {dim} wide. "
                "Use at most as many fractions, or a wider model"
            )
        return super().problem(loss, dim=dim, batch_size=batch_size)

    def build(self, made: Ingredients) -> Cascade:
        """Compose the recipe."""
        return Cascade(self, made)
