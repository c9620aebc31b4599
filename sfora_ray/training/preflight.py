"""Everything that can be known to be wrong before a night is lost, and the plan of a member in plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from sfora_ray.arrays import Int64
from sfora_ray.config.pack import PackConfig
from sfora_ray.data.base import ImageDataset, SplitCounts
from sfora_ray.data.unreadable import without
from sfora_ray.errors import ConfigError, DataError, WeightsError
from sfora_ray.models import Embedder, build_embedder
from sfora_ray.parameters import ParameterGroup
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import Ingredients
from sfora_ray.samplers import RandomOptions
from sfora_ray.training.parts import build_objective
from sfora_ray.training.preparation import split_train
from sfora_ray.training.schedule import rate_factor
from sfora_ray.training.starting import starting_weights
from sfora_ray.training.teacher import prove_teacher


@dataclass(frozen=True)
class GroupPlan:
    """One parameter group: how much it holds, its rate, its decay, and whether it learns during warm-up."""

    name: str
    num_tensors: int
    num_parameters: int
    lr: float
    weight_decay: float
    warms_up: bool


@dataclass(frozen=True)
class MemberPlan:
    """What each member will do.

    Attributes:
        counts: classes and images of both splits.
        validation_classes: training classes held out for the selection of an epoch.
        steps_per_epoch: optimiser steps.
        groups: the optimiser's parameter groups.
        rates: ``(first epoch, factor)`` of each stretch of the schedule; a cosine has one per epoch.
        weights: name and SHA-256 of what the backbone starts from.
        dataset_digest: of every id and label; empty where the data are not at hand.
        notes: what is worth knowing before it starts.
    """

    counts: SplitCounts
    validation_classes: int
    steps_per_epoch: int
    groups: tuple[GroupPlan, ...]
    rates: tuple[tuple[int, float], ...]
    weights: str
    dataset_digest: str
    notes: tuple[str, ...]


def preflight(config: PackConfig, left_out: Sequence[str] = ()) -> MemberPlan:
    """Read the data's table, fill a batch, load the weights and group the parameters; train nothing.

    Args:
        config: what is to be trained.
        left_out: ids of images that the pack does without, for they cannot be read.

    Raises:
        InputError: data, sampler or weights do not fit; the message names the place and the way out.
    """
    dataset = without(config.data.load(config.cache_dir.expanduser()), left_out)
    train, held_out = split_train(config, dataset)
    embedder = _embedder(config, dataset.channels)
    notes = prove_teacher(config, embedder, dataset.test)
    return _plan(
        config,
        counts=_counts(dataset),
        labels=train.labels,
        coarse=train.coarse_labels,
        validation_classes=0 if held_out is None else len(held_out.class_names),
        embedder=embedder,
        weights=starting_weights(config),
        dataset_digest=dataset.digest,
        notes=(*dataset.notes, *notes),
    )


def dry_plan(config: PackConfig) -> MemberPlan:
    """Return the plan even where data or weights are not at hand, as far as published counts allow.

    Raises:
        InputError: something else is wrong, or the data set has no published counts.
    """
    try:
        return preflight(config)
    except (DataError, WeightsError) as error:
        published = config.data.published_counts()
        if published is None:
            raise
        notes = (f"not at hand yet: {error}", "counts as published, backbone without its weights")
    split = config.selection.split == "validation"
    share = config.selection.validation_fraction
    if config.selection.validation_folds is not None:
        share = 1 / config.selection.validation_folds
    held_out = round(published.train_classes * share) if split else 0
    classes = published.train_classes - held_out
    images = published.train_images * classes // published.train_classes
    labels = np.sort(np.arange(images, dtype=np.int64) % classes)
    bare = config.model.model_copy(update={"backbone": config.model.backbone.without_weights()})
    return _plan(
        config,
        counts=published,
        labels=labels,
        coarse=None if published.coarse_classes is None else labels % published.coarse_classes,
        validation_classes=held_out,
        embedder=_embedder(config.model_copy(update={"model": bare}), published.channels),
        weights="not read",
        dataset_digest="",
        notes=notes,
    )


def _embedder(config: PackConfig, channels: int) -> Embedder:
    return build_embedder(config.model, channels=channels, generator=torch_generator(0, "plan"))


def _counts(dataset: ImageDataset) -> SplitCounts:
    return SplitCounts(
        train_classes=len(dataset.train.class_names),
        train_images=len(dataset.train),
        test_classes=len(dataset.test.class_names),
        test_images=len(dataset.test),
        channels=dataset.channels,
        coarse_classes=len(dataset.train.coarse_names) or None,
    )


def _plan(
    config: PackConfig,
    *,
    counts: SplitCounts,
    labels: Int64,
    coarse: Int64 | None,
    validation_classes: int,
    embedder: Embedder,
    weights: str,
    dataset_digest: str,
    notes: tuple[str, ...],
) -> MemberPlan:
    sampler = config.sampler.build(labels, coarse=coarse, seed=0)
    num_classes = len(np.unique(labels))
    objective = build_objective(config, dim=embedder.training_dim, num_classes=num_classes, generator=torch.Generator())
    _refuse_length(config, sampler.steps_per_epoch * config.training.epochs)
    # A plan may be made where a trained teacher's file is not; it learns nothing, so that the groups are the same.
    plain = config.recipe.without_teacher_file()
    recipe = plain.build(Ingredients(embedder, objective, num_classes, torch.Generator()))
    groups = recipe.parameter_groups(config.optimizer.lr, config.optimizer.head_lr or config.optimizer.lr)
    return MemberPlan(
        counts=counts,
        validation_classes=validation_classes,
        steps_per_epoch=sampler.steps_per_epoch,
        groups=tuple(_group(config, group) for group in groups),
        rates=_rates(config),
        weights=weights,
        dataset_digest=dataset_digest,
        notes=(*notes, *sampler.notes, *_few_positives(config, labels)),
    )


def _few_positives(config: PackConfig, labels: Int64) -> tuple[str, ...]:
    """Say how rarely random batches hold what the objective compares, where that is less than a pair in 8 images."""
    batch, needs = config.sampler.batch_size, config.loss.needs_positives or config.recipe.needs_positives
    if not needs or not isinstance(config.sampler, RandomOptions):
        return ()
    sizes = np.bincount(labels).astype(np.float64)
    chance = (sizes * (sizes - 1)).sum() / (len(labels) * (len(labels) - 1))  # of two images to be of one class
    pairs = chance * batch * (batch - 1) / 2
    if pairs >= batch / 8:
        return ()
    return (
        f"sampler.name random: a batch of {batch} holds {pairs:.2g} pairs of one class on the average, and loss "
        f"{config.loss.name} with recipe {config.recipe.name} learns from such pairs; per_class makes them",
    )


def _refuse_length(config: PackConfig, steps: int) -> None:
    problem = config.recipe.length_problem(steps)
    if problem is not None:
        raise ConfigError(f"recipe.{problem}")


def _group(config: PackConfig, group: ParameterGroup) -> GroupPlan:
    return GroupPlan(
        group.name,
        len(group.parameters),
        sum(parameter.numel() for parameter in group.parameters),
        group.lr,
        config.optimizer.weight_decay if group.decays else 0.0,
        group.warms_up,
    )


def _rates(config: PackConfig) -> tuple[tuple[int, float], ...]:
    epochs = config.training.epochs
    factors = [(epoch, rate_factor(config.schedule, epoch, epochs)) for epoch in range(1, epochs + 1)]
    changes = [entry for before, entry in pairwise(factors) if entry[1] != before[1]]
    return (factors[0], *changes)
