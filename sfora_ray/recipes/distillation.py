"""Relational distillation from a teacher, around any objective and any other recipe.

The teacher is the student's exponential moving average (Tarvainen, Valpola: Mean Teachers Are Better Role
Models, NeurIPS 2017) or a member that is already trained. What it teaches is how the images of a batch
relate: the softmax of each row's cosines to the others (as relational distillation in HERD).

The teacher is a copy of the embedder in evaluation mode and sees the very images the student sees. After each
step its parameters are averaged, frozen ones included, and its buffers copied. The student is evaluated.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.losses import LossOptions, Objective
from sfora_ray.models import Embedder, install_weights, read_weights
from sfora_ray.parameters import ParameterGroup
from sfora_ray.recipes.base import Ingredients, LossTerms, Recipe, RecipeOptions, Seen, Turn
from sfora_ray.recipes.inner import InnerRecipe
from sfora_ray.recipes.parallel import share_statistics
from sfora_ray.recipes.plain import PlainOptions

MASKED = -1e9


def relational_distillation(student: Tensor, teacher: Tensor, *, tau: float) -> Tensor:
    """Return the mean cross entropy of the student's relations under the teacher's.

    Relations of a row are the softmax of its cosines to all other rows over ``tau``. This is a cross entropy,
    not a divergence: a perfect student reaches the entropy of the teacher's rows. Two rows give exactly 0.

    Args:
        student: ``(B, D)`` raw rows.
        teacher: ``(B, D')`` raw rows of the same images; no gradient flows to them.
        tau: temperature of both sides.
    """
    targets = _relations(teacher.detach(), tau).softmax(dim=1)
    return -(targets * _relations(student, tau).log_softmax(dim=1)).sum(dim=1).mean()


def _relations(rows: Tensor, tau: float) -> Tensor:
    """Return ``(B, B)`` cosines over ``tau``, the diagonal out of any softmax's reach."""
    directions = F.normalize(rows)
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    # Finite, for minus infinity times a target of zero would be NaN.
    return (directions @ directions.T / tau).masked_fill(itself, MASKED)


@torch.no_grad()
def update_average(teacher: nn.Module, student: nn.Module, *, momentum: float) -> None:
    """Move parameters to ``momentum * teacher + (1 - momentum) * student`` and copy buffers."""
    torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 1 - momentum)
    for kept, current in zip(teacher.buffers(), student.buffers(), strict=True):
        kept.copy_(current)


class Distillation(Recipe):
    """Another recipe, and the relations of a teacher that stays as it is."""

    def __init__(self, options: DistillationOptions, base: Recipe) -> None:
        super().__init__(base.autocast, base.gather)
        self.options = options
        self.base = base
        self.teacher = copy.deepcopy(base.embedder).requires_grad_(False)
        self.train()

    @property
    def embedder(self) -> Embedder:
        """The student."""
        return self.base.embedder

    @property
    def objective(self) -> Objective:
        """The loss that the relations are added to."""
        return self.base.objective

    def parameter_groups(self, lr: float, head_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the groups of the recipe inside; a teacher learns nothing by itself."""
        return self.base.parameter_groups(lr, head_lr)

    def train(self, mode: bool = True) -> Self:
        """Switch student and objective; the teacher is always in evaluation mode."""
        super().train(mode)
        self.teacher.eval()
        return self

    def turns(self, images: Tensor, labels: Tensor) -> Iterator[Turn]:
        """Yield the turns of the recipe inside; where the student learns, with the weighted distillation loss."""
        for turn in self.base.turns(images, labels):
            yield turn if turn.seen is None else replace(turn, terms=self._with_relations(turn.terms, turn.seen))

    def _with_relations(self, terms: LossTerms, seen: Seen) -> LossTerms:
        with torch.no_grad():
            teacher = self.rows(self.teacher, seen.images)
        distillation = relational_distillation(seen.rows, teacher, tau=self.options.tau)
        total = terms.total + self.options.weight * distillation
        return LossTerms(total, {**terms.terms, "distillation": distillation.detach()})

    def after_step(self) -> None:
        """Let the recipe inside do what it does."""
        self.base.after_step()


class AverageDistillation(Distillation):
    """Another recipe, and the relations of the student's own moving average."""

    def after_step(self) -> None:
        """Let the teacher follow the student."""
        super().after_step()
        share_statistics(self.embedder)
        update_average(self.teacher, self.embedder, momentum=self.options.momentum)


class DistillationOptions(RecipeOptions):
    """Options of distillation; the defaults are HERD's."""

    card: ClassVar[Card] = Card(
        title="EMA-teacher relational distillation (HERD)",
        paper="HERD; teacher after Tarvainen, Valpola, NeurIPS 2017",
        checked="reference values of loss, gradient, moving average and a whole published training loop",
    )

    name: Literal["distillation"] = "distillation"
    weight: float = Field(default=1.0, ge=0)
    """Weight of the distillation loss beside the objective."""
    tau: float = Field(default=0.1, gt=0)
    """Temperature of both softmaxes."""
    momentum: float = Field(default=0.999, ge=0, le=1)
    """How much of the moving average stays at each step."""
    teacher: Literal["ema", "checkpoint"] = "ema"
    """The student's moving average, or a trained member of the same architecture that stays as it is."""
    checkpoint: Path | None = None
    """The trained member's ``model.safetensors``, for ``teacher: checkpoint``."""
    base: InnerRecipe = PlainOptions()
    """The recipe that it is added to."""

    @model_validator(mode="after")
    def _checkpoint_goes_with_its_teacher(self) -> DistillationOptions:
        if self.teacher == "checkpoint" and self.checkpoint is None:
            raise ValueError("teacher 'checkpoint' needs checkpoint: the path of a model.safetensors")
        if self.teacher == "ema" and self.checkpoint is not None:
            raise ValueError("checkpoint is read only with teacher 'checkpoint'")
        return self

    def problem(self, loss: LossOptions, *, dim: int, batch_size: int) -> str | None:
        """Return why the recipe inside cannot be used so, or None."""
        problem = self.base.problem(loss, dim=dim, batch_size=batch_size)
        return None if problem is None else f"base.{problem}"

    def length_problem(self, steps: int) -> str | None:
        """Return why a training of so many steps does not suit the recipe inside, or None."""
        problem = self.base.length_problem(steps)
        return None if problem is None else f"base.{problem}"

    @property
    def teacher_file(self) -> Path | None:
        """Return the trained teacher's file, if it is no average."""
        return self.checkpoint

    def without_teacher_file(self) -> DistillationOptions:
        """Return the same with an average for a teacher."""
        return self.model_copy(update={"teacher": "ema", "checkpoint": None})

    def build(self, made: Ingredients) -> Distillation:
        """Compose the recipe.

        Raises:
            WeightsError: the checkpoint is absent, damaged, or of another network.
        """
        kind = AverageDistillation if self.checkpoint is None else Distillation
        recipe = kind(self, self.base.build(made))
        if self.checkpoint is not None:
            install_weights(recipe.teacher, read_weights(self.checkpoint), source=str(self.checkpoint))
        return recipe
