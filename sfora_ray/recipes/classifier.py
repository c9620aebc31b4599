"""Classifier-assisted training: the objective, and the cross entropy of a linear classifier on the same rows.

The classifier sees the raw rows that the objective sees and names one of the training classes ``0..C-1``; it only
helps to train and is not part of the embedder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from sfora_ray.card import Card
from sfora_ray.models.backbone import seeded_by
from sfora_ray.parameters import ParameterGroup, split_by_decay
from sfora_ray.recipes.base import Ingredients, LossTerms, RecipeOptions, Seen, StudentRecipe, Turn


class ClassifierAssisted(StudentRecipe):
    """The objective and a classifier beside it."""

    def __init__(self, options: ClassifierOptions, made: Ingredients) -> None:
        super().__init__(made)
        self.options = options
        with seeded_by(made.generator):
            self.classifier = nn.Linear(made.embedder.training_dim, made.num_classes)

    def turns(self, images: Tensor, labels: Tensor) -> Iterator[Turn]:
        """Yield the objective's loss plus the weighted cross entropy, of the whole batch."""
        rows, classes = self.rows(self.student, images), self.gather(labels)
        objective: Tensor = self.loss(rows, classes)
        classification = F.cross_entropy(self.classifier(rows), classes)
        total = objective + self.options.weight * classification
        terms = {"objective": objective.detach(), "classification": classification.detach()}
        yield Turn(LossTerms(total, terms), Seen(images, rows))

    def parameter_groups(self, lr: float, head_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the groups of student and objective, and the classifier's at its multiple of the head's rate."""
        rate = head_lr * self.options.lr_factor
        classifier = split_by_decay("classifier", self.classifier, rate, warms_up=True)
        return (*super().parameter_groups(lr, head_lr), *classifier)


class ClassifierOptions(RecipeOptions):
    """Options of classifier-assisted training."""

    card: ClassVar[Card] = Card(
        title="Classifier-assisted training",
        paper="none: metric learning with an auxiliary cross entropy",
        checked="independent calculation of both terms and of the classifier's gradient",
    )

    name: Literal["classifier"] = "classifier"
    weight: float = Field(default=1.0, ge=0)
    """Weight of the cross entropy beside the objective."""
    lr_factor: float = Field(default=1.0, gt=0)
    """The classifier's learning rate over that of the embedding head."""

    def build(self, made: Ingredients) -> ClassifierAssisted:
        """Compose the recipe."""
        return ClassifierAssisted(self, made)
