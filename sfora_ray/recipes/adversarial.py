"""Adversarial metric learning: a generator makes hard negatives, the network learns to tell them apart.

Duan, Zheng, Lin, Lu, Zhou: Deep Adversarial Metric Learning, CVPR 2018. ``a``, ``p``, ``n`` are the pooled features
of a triplet, ``s = G([a, p, n])`` a synthetic negative in the same space; ``u(x)`` is ``x`` of unit length and
``e(x)`` its embedding of unit length. A step has two turns.

The generator's turn, the network held fixed, has three terms of equal weight:

- adversarial: ``|e(a) - e(s)| - |e(a) - e(p)| - margin`` where positive, averaged over those: the synthetic negative
  shall look as close to the anchor as the positive does;
- hardness: the mean squared difference of ``u(s)`` and ``u(a)``;
- regularity: the mean squared difference of ``u(s)`` and ``u(n)``.

The network's turn, the generator held fixed, adds to the objective on the authentic rows (a triplet margin loss of
margin 0.2 makes it the published composition) ``|e(a) - e(p)| - |e(a) - e(s)| + margin``, averaged likewise.

A triplet is an anchor with its farthest positive and its nearest negative in the current embedding, so nothing is
drawn at random; a row without either is no anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from torch.func import functional_call

from sfora_ray.card import Card
from sfora_ray.mining import BatchHardOptions
from sfora_ray.models import Embedder
from sfora_ray.models.backbone import seeded_by
from sfora_ray.parameters import ParameterGroup, split_by_decay
from sfora_ray.recipes.base import Ingredients, LossTerms, RecipeOptions, Seen, StudentRecipe, Turn
from sfora_ray.tuples import Triplets


def mean_of_positive(violations: Tensor) -> Tensor:
    """Return the mean of the positive entries of ``(T,)``; 0, with a gradient of 0, if there is none."""
    return violations.clamp(min=0).sum() / (violations > 0).sum().clamp(min=1)


def distance(first: Tensor, second: Tensor) -> Tensor:
    """Return the ``(T,)`` distances between the directions of ``(T, D)`` rows."""
    return F.pairwise_distance(F.normalize(first), F.normalize(second), eps=0)


def direction_error(first: Tensor, second: Tensor) -> Tensor:
    """Return the mean squared difference of coordinates between the directions of ``(T, F)`` rows."""
    squared = (F.normalize(first) - F.normalize(second)).square()
    return squared.sum() / max(squared.numel(), 1)


class _Projection(nn.Module):
    """An embedder's way from pooled features to rows, as a module of its own."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder

    def forward(self, features: Tensor) -> Tensor:
        return self.embedder.project(features)


def frozen_projection(embedder: Embedder) -> Callable[[Tensor], Tensor]:
    """Return the map from features to rows through which gradients reach features but no parameter."""
    projection = _Projection(embedder)
    constants = {name: parameter.detach() for name, parameter in projection.named_parameters()}

    def project(features: Tensor) -> Tensor:
        rows: Tensor = functional_call(projection, constants, (features,))
        return rows

    return project


def make_generator(num_features: int, hidden: tuple[int, ...], *, generator: torch.Generator) -> nn.Sequential:
    """Return linear layers with ReLU between them, from ``(T, 3 F)`` features of triplets to ``(T, F)``."""
    widths = (3 * num_features, *hidden, num_features)
    with seeded_by(generator):
        layers = [[nn.Linear(inputs, outputs), nn.ReLU()] for inputs, outputs in pairwise(widths)]
    return nn.Sequential(*[part for layer in layers for part in layer][:-1])


class Adversarial(StudentRecipe):
    """A network and a generator of negatives that learn against each other."""

    def __init__(self, options: AdversarialOptions, made: Ingredients) -> None:
        super().__init__(made)
        self.options = options
        num_features = made.embedder.backbone.num_features
        self.miner = BatchHardOptions().build()
        self.generator = make_generator(num_features, options.hidden, generator=made.generator)

    def turns(self, images: Tensor, labels: Tensor) -> Iterator[Turn]:
        """Yield the generator's turn, then the network's, on the whole batch."""
        features, classes = self.rows(self.student.features, images), self.gather(labels)
        rows = self.run(self.student.project, features)
        triplets: Triplets = self.miner(rows, classes)
        # One forward pass serves both turns: in between only the generator changes.
        yield Turn(self._generator_terms(features.detach(), rows.detach(), triplets), None)
        synthetic = self._synthetic_loss(features.detach(), rows, triplets)
        objective: Tensor = self.loss(rows, classes)
        terms = {"objective": objective.detach(), "synthetic": synthetic.detach()}
        yield Turn(LossTerms(objective + synthetic, terms), Seen(images, rows))

    def _negatives(self, features: Tensor, chosen: Triplets) -> Tensor:
        """Return ``(T, F)`` synthetic negatives of triplets of ``(B, F)`` features."""
        parts = (features[chosen.anchors], features[chosen.positives], features[chosen.negatives])
        return self.run(self.generator, torch.cat(parts, dim=1))

    def _generator_terms(self, features: Tensor, rows: Tensor, chosen: Triplets) -> LossTerms:
        negatives = self._negatives(features, chosen)
        anchors = rows[chosen.anchors]
        to_negative = distance(anchors, self.run(frozen_projection(self.student), negatives))
        to_positive = distance(anchors, rows[chosen.positives])
        parts = {
            "adversarial": mean_of_positive(to_negative - to_positive - self.options.adversarial_margin),
            "hardness": direction_error(negatives, features[chosen.anchors]),
            "regularity": direction_error(negatives, features[chosen.negatives]),
        }
        total = parts["adversarial"] + parts["hardness"] + parts["regularity"]
        return LossTerms(total, {name: part.detach() for name, part in parts.items()})

    def _synthetic_loss(self, features: Tensor, rows: Tensor, chosen: Triplets) -> Tensor:
        with torch.no_grad():
            negatives = self._negatives(features, chosen)
        anchors = rows[chosen.anchors]
        to_negative = distance(anchors, self.run(self.student.project, negatives))
        return mean_of_positive(distance(anchors, rows[chosen.positives]) - to_negative + self.options.synthetic_margin)

    def parameter_groups(self, lr: float, head_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the groups of student and objective, and the generator's at its multiple of the head's rate."""
        generator = split_by_decay("generator", self.generator, head_lr * self.options.lr_factor, warms_up=True)
        return (*super().parameter_groups(lr, head_lr), *generator)


class AdversarialOptions(RecipeOptions):
    """Options of adversarial metric learning."""

    card: ClassVar[Card] = Card(
        title="Deep adversarial metric learning (DAML)",
        paper="Duan, Zheng, Lin, Lu, Zhou, CVPR 2018; terms and weights as in the training-composition document",
        checked="slow loops for every term; who owns which gradient and who moves in which turn, over repeated steps",
        differences="equal weights, a plain linear/ReLU generator, no pre-training; hardest triplets, none at random",
    )

    needs_positives: ClassVar[bool] = True

    name: Literal["adversarial"] = "adversarial"
    adversarial_margin: float = Field(default=0.2, ge=0)
    """How much farther than the positive a synthetic negative may be before the generator is charged."""
    synthetic_margin: float = Field(default=0.2, ge=0)
    """Margin of the triplet loss on synthetic negatives."""
    hidden: tuple[Annotated[int, Field(ge=1, le=65536)], ...] = (512,)
    """Widths of the generator's hidden layers."""
    lr_factor: float = Field(default=1.0, gt=0)
    """The generator's learning rate over that of the embedding head."""

    def build(self, made: Ingredients) -> Adversarial:
        """Compose the recipe."""
        return Adversarial(self, made)
