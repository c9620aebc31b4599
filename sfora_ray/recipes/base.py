"""The contract of a recipe and of its options.

One training step, in the loop's hands::

    terms = recipe.losses(images, labels)
    terms.total.backward()
    average_gradients(recipe.parameters())   # data-parallel members only
    optimizer.step()
    recipe.after_step()

A recipe's ``state_dict`` is the whole state of a member's networks: student, objective, teacher.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from torch import Tensor, nn

from sfora_ray.losses import Objective
from sfora_ray.models import Embedder
from sfora_ray.options import Options
from sfora_ray.parameters import ParameterGroup

Autocast = Callable[[], AbstractContextManager[object]]
Gather = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class LossTerms:
    """The losses of one batch.

    Attributes:
        total: the scalar to call ``backward`` on.
        terms: the parts by name, detached and unweighted, for the log.
    """

    total: Tensor
    terms: dict[str, Tensor]


def only_rows_here(rows: Tensor) -> Tensor:
    """Gather over one worker: the rows themselves."""
    return rows


class Recipe(nn.Module, ABC):
    """A student network, its objective, and how a batch becomes a loss.

    Attributes:
        embedder: the student; it is what is evaluated and saved.
        objective: the loss and what it learns.
    """

    def __init__(
        self,
        embedder: Embedder,
        objective: Objective,
        *,
        autocast: Autocast = nullcontext,
        gather: Gather = only_rows_here,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.objective = objective
        self.autocast = autocast
        self.gather = gather

    @abstractmethod
    def losses(self, images: Tensor, labels: Tensor) -> LossTerms:
        """Return the losses of this worker's ``(B, C, H, W)`` images with their ``(B,)`` labels.

        Embeddings and labels are gathered here, so every worker computes the loss of the whole batch.
        """

    def after_step(self) -> None:
        """Do what follows an optimiser step; nothing, unless a recipe says otherwise."""

    def parameter_groups(self, lr: float, head_lr: float) -> tuple[ParameterGroup, ...]:
        """Return every parameter that learns in exactly one group: backbone, head, objective."""
        return (
            *self.embedder.parameter_groups(lr, head_lr),
            *self.objective.parameter_groups(lr),
        )

    def rows(self, network: nn.Module, images: Tensor) -> Tensor:
        """Return the whole batch's rows by ``network``: run under autocast, then widened and gathered."""
        with self.autocast():
            rows: Tensor = network(images)  # (B, D)
        return self.gather(rows.float() if rows.element_size() < 4 else rows)


class RecipeOptions(Options, ABC):
    """Options of a recipe."""

    name: str
    """Key in the recipe table."""

    @abstractmethod
    def build(
        self,
        embedder: Embedder,
        objective: Objective,
        *,
        autocast: Autocast = nullcontext,
        gather: Gather = only_rows_here,
    ) -> Recipe:
        """Compose the recipe.

        Args:
            embedder: the student.
            objective: its loss.
            autocast: makes the context the networks run in; the losses stay outside of it, in float32.
            gather: joins the rows of all data-parallel workers, differentiably, labels too.
        """
