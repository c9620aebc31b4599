"""What distillation adds to a training step: HERD against HIST, same network, same batch.

The floor is 4/3: a student's forward and backward count three, a teacher's forward one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.optim import AdamW

from sfora_ray.benchmarks.base import BenchmarkResult, time_in_turn
from sfora_ray.losses import HistOptions
from sfora_ray.models import ModelOptions, ResNetOptions, build_embedder
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import DistillationOptions, Ingredients, PlainOptions, RecipeOptions

CLASSES, PER_CLASS = 100, 4


def run(*, quick: bool = False) -> BenchmarkResult:
    """Time one optimiser step of a ResNet-18 in fp32 on the CPU, one thread."""
    side, batch, rounds = (32, 8, 3) if quick else (112, 40, 7)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        herd, hist = _step(DistillationOptions(), side, batch), _step(PlainOptions(), side, batch)
        herd(), hist()
        timing = time_in_turn(herd, hist, rounds)
    finally:
        torch.set_num_threads(threads)
    assert abs(timing.ours - timing.theirs) < 1e-3, "both objectives must see the same student"
    return BenchmarkResult(
        name="step",
        ours_seconds=timing.ours_seconds,
        theirs_seconds=timing.theirs_seconds,
        ratio=timing.ours_seconds / timing.theirs_seconds,
        mark="<= 1.36",
        peak_mib=timing.peak_mib,
        note=f"ResNet-18, {side} px, batch {batch}, one thread; both students start alike",
    )


def _step(options: RecipeOptions, side: int, batch: int) -> Callable[[], float]:
    """Return a function that takes one step and returns the objective at the shared start."""
    network = ModelOptions(backbone=ResNetOptions(name="resnet18", weights="none"), layer_norm=True)
    embedder = build_embedder(network, channels=3, generator=torch_generator(0, "benchmark"))
    objective = HistOptions().build(dim=512, num_classes=CLASSES, generator=torch_generator(1, "benchmark"))
    recipe = options.build(Ingredients(embedder, objective, CLASSES, torch_generator(3, "benchmark")))
    groups = [{"params": group.parameters, "lr": group.lr} for group in recipe.parameter_groups(1e-4, 1e-4)]
    optimizer = AdamW(groups)
    images = torch.randn(batch, 3, side, side, generator=torch_generator(2, "benchmark"))
    labels = torch.arange(batch) // PER_CLASS
    first: list[float] = []

    def step() -> float:
        optimizer.zero_grad()
        (turn,) = recipe.turns(images, labels)
        torch.autograd.backward(turn.terms.total)
        optimizer.step()
        recipe.after_step()
        first.append(float(turn.terms.terms["objective"]))
        return first[0]

    return step
