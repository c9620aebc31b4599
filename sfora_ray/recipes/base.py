"""The contract of a recipe and of its options.

One training step, in the loop's hands::

    for turn in recipe.turns(images, labels):
        optimizer.zero_grad()
        turn.terms.total.backward()
        average_gradients(recipe.parameters())   # data-parallel members only
        optimizer.step()
    recipe.after_step()

Most recipes have one turn. Where two parties learn against each other each has its own, and in it only its own
parameters have a gradient, so that the optimiser changes those alone.

A recipe's ``state_dict`` is the whole state of a member's networks: student, objective, teacher.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.losses import LossOptions, Objective
from sfora_ray.models import Embedder
from sfora_ray.options import Options
from sfora_ray.parameters import ParameterGroup
from sfora_ray.precision import widened

Autocast = Callable[[], AbstractContextManager[object]]
Gather = Callable[[Tensor], Tensor]


def only_rows_here(rows: Tensor) -> Tensor:
    """Gather over one worker: the rows themselves."""
    return rows


@dataclass(frozen=True)
class Ingredients:
    """What a recipe is composed of.

    Attributes:
        embedder: the student.
        objective: its loss.
        num_classes: training classes ``C``.
        generator: of whatever the recipe draws for itself, such as a classifier's start.
        autocast: makes the context the networks run in; losses stay outside of it, in float32.
        gather: joins the rows of all data-parallel workers, differentiably, labels too.
    """

    embedder: Embedder
    objective: Objective
    num_classes: int
    generator: torch.Generator
    autocast: Autocast = nullcontext
    gather: Gather = only_rows_here


@dataclass(frozen=True)
class LossTerms:
    """The losses of one batch.

    Attributes:
        total: the scalar to call ``backward`` on.
        terms: the parts by name, detached and unweighted, for the log.
    """

    total: Tensor
    terms: dict[str, Tensor]


@dataclass(frozen=True)
class Seen:
    """What the student saw and made of it.

    Attributes:
        images: ``(b, C, H, W)`` this worker's.
        rows: ``(B, D)`` raw embeddings of all workers' images, with their gradient.
    """

    images: Tensor
    rows: Tensor


@dataclass(frozen=True)
class Turn:
    """One backward pass and one optimiser step.

    Attributes:
        terms: its losses.
        seen: what the student saw, or None in a turn in which it does not learn.
    """

    terms: LossTerms
    seen: Seen | None


class Recipe(nn.Module, ABC):
    """A student network, its objective, and how a batch becomes a loss."""

    def __init__(self, autocast: Autocast, gather: Gather) -> None:
        super().__init__()
        self.autocast = autocast
        self.gather = gather

    @property
    @abstractmethod
    def embedder(self) -> Embedder:
        """The student; it is what is evaluated and saved."""

    @property
    @abstractmethod
    def objective(self) -> Objective:
        """The loss and what it learns."""

    @abstractmethod
    def turns(self, images: Tensor, labels: Tensor) -> Iterator[Turn]:
        """Yield the turns of a step on this worker's ``(b, C, H, W)`` images with their ``(b,)`` labels.

        Embeddings and labels are gathered here, so every worker computes the loss of the whole batch. A turn is
        computed when it is asked for, after the optimiser's step for the turn before it.
        """

    @abstractmethod
    def parameter_groups(self, lr: float, head_lr: float) -> tuple[ParameterGroup, ...]:
        """Return every parameter that learns in exactly one group: backbone, head, objective."""

    def after_step(self) -> None:
        """Do what follows a step; nothing, unless a recipe says otherwise."""

    def rows(self, network: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        """Return the whole batch's rows by ``network``: run under autocast, then widened and gathered."""
        return self.gather(self.run(network, images))  # (B, D)

    def run(self, network: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        """Return what ``network`` makes of ``inputs``: run under autocast, then widened."""
        with self.autocast():
            outputs = network(inputs)
        return widened(outputs)


class StudentRecipe(Recipe):
    """A recipe that owns its student and objective; all but those that wrap another recipe are."""

    def __init__(self, made: Ingredients) -> None:
        super().__init__(made.autocast, made.gather)
        self.student = made.embedder
        self.loss = made.objective

    @property
    def embedder(self) -> Embedder:
        """The student."""
        return self.student

    @property
    def objective(self) -> Objective:
        """The loss."""
        return self.loss

    def parameter_groups(self, lr: float, head_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the groups of the student and of the objective."""
        return (*self.student.parameter_groups(lr, head_lr), *self.loss.parameter_groups(lr))


class RecipeOptions(Options, ABC):
    """Options of a recipe."""

    name: str
    """Key in the recipe table."""

    card: ClassVar[Card]
    """Its row in the table of methods."""

    needs_positives: ClassVar[bool] = False
    """Whether it compares two images of a class itself, whatever the objective does."""

    chooses_tuples: ClassVar[bool] = False
    """Whether the recipe itself chooses the tuples of its objective, so that no miner can."""

    def problem(self, loss: LossOptions, *, dim: int, batch_size: int) -> str | None:  # noqa: ARG002
        """Return why it cannot be used so and the way out, beginning with the key at fault, or None.

        Args:
            loss: the objective's options.
            dim: width of the rows that losses see.
            batch_size: images in a batch.
        """
        return None

    def length_problem(self, steps: int) -> str | None:  # noqa: ARG002
        """Return why so many steps would not be what they seem, beginning with the key at fault, or None."""
        return None

    @property
    def teacher_file(self) -> Path | None:
        """Return the file of a trained teacher, where there is one."""
        return None

    def without_teacher_file(self) -> RecipeOptions:
        """Return the recipe of the same parameters that reads no file, for plans made where it is not at hand."""
        return self

    @abstractmethod
    def build(self, made: Ingredients) -> Recipe:
        """Compose the recipe."""
