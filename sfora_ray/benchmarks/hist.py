"""HIST's class distances: matrix products against the tensor of all differences, at the size of SOP."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from sfora_ray.benchmarks.base import BenchmarkResult, time_in_turn
from sfora_ray.losses.hypergraph import class_distances, clip_published, distribution_loss
from sfora_ray.randomness import torch_generator

ROWS, DIM, CLASSES, QUICK_CLASSES = 120, 512, 11_318, 300

Distances = Callable[[Tensor, Tensor, Tensor], Tensor]
Inputs = tuple[Tensor, Tensor, Tensor, Tensor]


def expanded_distances(embeddings: Tensor, means: Tensor, log_variances: Tensor) -> Tensor:
    """Return the ``(B, C)`` distances through a ``(B, C, D)`` tensor, as the authors' program does."""
    differences = embeddings[:, None] - F.normalize(means)  # (B, C, D)
    scaled = differences.square() / torch.exp(log_variances)
    return scaled.sum(dim=2)  # (B, C)


def run(*, quick: bool = False) -> BenchmarkResult:
    """Time the distribution loss forward and backward both ways.

    The full size needs about 12 GiB for the expanded tensors; quick takes few classes.
    """
    num_classes, rounds = (QUICK_CLASSES, 3) if quick else (CLASSES, 3)
    inputs = _inputs(num_classes)
    _gradients(class_distances, inputs)  # the first call pays for starting torch's threads
    timing = time_in_turn(
        lambda: _gradients(class_distances, inputs), lambda: _gradients(expanded_distances, inputs), rounds
    )
    for ours, theirs in zip(timing.ours, timing.theirs, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
    return BenchmarkResult(
        name="hist",
        ours_seconds=timing.ours_seconds,
        theirs_seconds=timing.theirs_seconds,
        ratio=timing.theirs_seconds / timing.ours_seconds,
        mark=">= 60",
        peak_mib=timing.peak_mib,
        note=f"loss, forward and backward, n {ROWS}, C {num_classes}, d {DIM}; gradients agree",
    )


def _inputs(num_classes: int) -> Inputs:
    generator = torch_generator(0, "benchmark", "hist")
    rows = F.normalize(torch.randn(ROWS, DIM, generator=generator))
    means = torch.randn(num_classes, DIM, generator=generator)
    log_variances = torch.randn(num_classes, DIM, generator=generator)
    labels = torch.randint(num_classes, (ROWS,), generator=generator)
    return rows.requires_grad_(), means.requires_grad_(), log_variances.requires_grad_(), labels


def _gradients(distances: Distances, inputs: Inputs) -> tuple[Tensor, ...]:
    rows, means, log_variances, labels = inputs
    loss = distribution_loss(distances(rows, means, clip_published(log_variances)), labels, tau=32.0)
    return torch.autograd.grad(loss, (rows, means, log_variances))
