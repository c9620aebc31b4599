"""Two-stream training: query rows are compared with reference rows, of one network or of two.

The images of each class are dealt to both streams by their place in the batch, so the streams share classes but no
image, and may differ in length; equal positions mean nothing. With ``reference: own`` the references come from a
second network that starts as a copy of the student and learns beside it. The query network is the student.

Each network sees the whole batch, whichever rows are compared: so the workers of a member bring equally many rows,
batch statistics do not depend on the split, and a teacher can relate all images. The second network doubles the cost.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from sfora_ray.card import Card
from sfora_ray.models import Embedder
from sfora_ray.parameters import ParameterGroup
from sfora_ray.recipes.base import Ingredients, LossTerms, Seen, Turn
from sfora_ray.recipes.of_tuples import TupleRecipe, TupleRecipeOptions
from sfora_ray.tuples import pairs_between


def reference_rows(labels: Tensor, share: float) -> Tensor:
    """Return the ``(B,)`` mask of rows that are references, given ``(B,)`` labels.

    They are the last of each class: its share, rounded to the nearest (half to even), at least one and never all.
    A class with one row has no reference.
    """
    same = labels[:, None] == labels  # (B, B)
    counts = same.sum(dim=1)
    place = same.tril(diagonal=-1).sum(dim=1)
    references = (counts * share).round().clamp(min=1).minimum(counts - 1)
    return place >= counts - references


class TwoStream(TupleRecipe):
    """The objective between query rows and reference rows."""

    def __init__(self, options: TwoStreamOptions, made: Ingredients) -> None:
        super().__init__(made)
        self.options = options
        self.second: Embedder | None = copy.deepcopy(made.embedder) if options.reference == "own" else None

    def turns(self, images: Tensor, labels: Tensor) -> Iterator[Turn]:
        """Yield the loss of the whole batch's queries against its references."""
        rows, classes = self.rows(self.student, images), self.gather(labels)
        others = rows if self.second is None else self.rows(self.second, images)
        total = self._between(rows, others, classes)
        yield Turn(LossTerms(total, {"objective": total.detach()}), Seen(images, rows))

    def _between(self, rows: Tensor, others: Tensor, classes: Tensor) -> Tensor:
        reference = reference_rows(classes, self.options.share)
        pairs = pairs_between(classes[~reference], classes[reference])
        return self.objective.compare(rows[~reference], others[reference], pairs)

    def parameter_groups(self, lr: float, head_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the groups of student and objective, and those of the second network at the student's rates."""
        groups = super().parameter_groups(lr, head_lr)
        if self.second is None:
            return groups
        own = self.second.parameter_groups(lr, head_lr)
        return (*groups, *(replace(group, name=f"reference.{group.name}") for group in own))


class TwoStreamOptions(TupleRecipeOptions):
    """Options of two-stream training."""

    card: ClassVar[Card] = Card(
        title="Two-stream training",
        paper="none: an objective of pairs between two sets of rows",
        checked="slow loops over queries and references on unequal classes in shuffled order",
        differences="streams are dealt from one batch; both networks see all of it",
    )

    name: Literal["two_stream"] = "two_stream"
    reference: Literal["shared", "own"] = "shared"
    """References come from the student itself, or from a second network that starts as its copy."""
    share: float = Field(default=0.5, gt=0, lt=1)
    """Share of each class's images in a batch that are references; at least one of each class with two."""

    def build(self, made: Ingredients) -> TwoStream:
        """Compose the recipe."""
        return TwoStream(self, made)
