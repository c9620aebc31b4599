"""The parts of one member's training, put together from its spec."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.data.loader import TrainLoader
from sfora_ray.data.transforms import Normalizer
from sfora_ray.losses import Objective, TupleObjective
from sfora_ray.models import Embedder, build_embedder
from sfora_ray.parameters import ParameterGroup
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import Ingredients, Mined, Recipe, gather_rows
from sfora_ray.samplers import Sampler
from sfora_ray.training.optimizer import build_optimizer
from sfora_ray.training.precision import autocast_for, gradient_scaler
from sfora_ray.training.preparation import MemberData
from sfora_ray.training.worker import Worker


@dataclass(frozen=True)
class Parts:
    """Live objects of one member on one worker. They change as it trains; which they are does not."""

    spec: MemberSpec
    worker: Worker
    data: MemberData
    sampler: Sampler
    loader: TrainLoader
    normalizer: Normalizer
    embedder: Embedder
    recipe: Recipe
    groups: tuple[ParameterGroup, ...]
    optimizer: Optimizer
    scaler: torch.amp.GradScaler

    @property
    def config(self) -> PackConfig:
        """Return the pack's configuration."""
        return self.spec.config

    def batches(self, sampler: Sampler, epoch: int, first_step: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield this worker's share of each batch from ``first_step`` on, normalised on its device, with labels."""
        for images, labels in self.loader.epoch(sampler, epoch, first_step=first_step):
            yield self.to_device(images), labels.to(self.worker.device, non_blocking=True)

    def to_device(self, images: Tensor) -> Tensor:
        """Move uint8 images ``(B, C, H, W)`` to the device, and only there make them floats."""
        normalized: Tensor = self.normalizer(images.to(self.worker.device, non_blocking=True))
        return normalized.contiguous(memory_format=_layout(self.config))


def build_parts(spec: MemberSpec, data: MemberData, worker: Worker) -> Parts:
    """Put a member together; every random start comes from generators named by its seed."""
    config = spec.config
    embedder = (
        build_embedder(config.model, channels=data.dataset.channels, generator=torch_generator(spec.seed, "model"))
        .to(memory_format=_layout(config))
        .to(worker.device)
    )
    num_classes = len(data.train.class_names)
    objective = build_objective(
        config, dim=embedder.training_dim, num_classes=num_classes, generator=torch_generator(spec.seed, "objective")
    )
    recipe = config.recipe.build(
        Ingredients(
            embedder,
            objective,
            num_classes,
            torch_generator(spec.seed, "recipe"),
            autocast=autocast_for(config.training.precision, worker.device),
            gather=gather_rows,
        )
    ).to(worker.device)
    if config.training.compile:
        embedder.compile()
    head_lr = config.optimizer.head_lr or config.optimizer.lr
    groups = recipe.parameter_groups(config.optimizer.lr, head_lr)
    sampler = config.sampler.build(data.train.labels, coarse=data.train.coarse_labels, seed=spec.seed)
    return Parts(
        spec=spec,
        worker=worker,
        data=data,
        sampler=sampler,
        loader=_loader(spec, data, worker),
        normalizer=config.input.normalizer(data.dataset.channels).to(worker.device),
        embedder=embedder,
        recipe=recipe,
        groups=groups,
        optimizer=build_optimizer(config.optimizer, groups, worker.device),
        scaler=gradient_scaler(config.training.precision, worker.device),
    )


def build_objective(config: PackConfig, *, dim: int, num_classes: int, generator: torch.Generator) -> Objective:
    """Make the objective for ``dim``-wide rows, with its miner where one is configured."""
    objective = config.loss.build(dim=dim, num_classes=num_classes, generator=generator)
    if config.miner is None:
        return objective
    assert isinstance(objective, TupleObjective), "the configuration refuses a miner for other objectives"
    return Mined(objective, config.miner.build())


def _loader(spec: MemberSpec, data: MemberData, worker: Worker) -> TrainLoader:
    return TrainLoader(
        data.train,
        spec.config.input.train_transform(),
        seed=spec.seed,
        num_workers=spec.config.training.loader_workers,
        pin_memory=worker.device.type == "cuda",
        shard=(worker.rank, worker.world_size),
        on_unreadable=data.on_unreadable,
    )


def _layout(config: PackConfig) -> torch.memory_format:
    return torch.channels_last if config.training.channels_last else torch.contiguous_format
