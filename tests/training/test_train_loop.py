"""Nine steps against the reference program: losses, weights, teacher, embeddings and parameter groups."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sfora_ray.models import Backbone, Embedder
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import Ingredients
from sfora_ray.training.optimizer import build_optimizer, set_rates
from sfora_ray.training.parts import Parts, build_parts
from sfora_ray.training.preparation import prepare_data
from sfora_ray.training.schedule import apply_warmup, rate_factor
from sfora_ray.training.step import take_step
from sfora_ray.training.worker import Worker
from tests.tiny import tiny_config, tiny_spec

REFERENCE = Path(__file__).parents[1] / "reference" / "train_loop.npz"
EPOCHS, STEPS = 3, 3
CASES = {"herd": (1e-9, 1e-10), "pa_distill": (1e-4, 1e-4)}
OWN_NAMES = {
    "conv1.": "student.backbone.conv1.",
    "bn1.": "student.backbone.bn1.",
    "fc.0.": "student.head.",
    "fc.": "student.head.",
    "hist_module.bn1.": "loss.network.norm.",
    "hist_module.theta": "loss.network.theta",
    "hist_module.log_vars": "loss.log_variances",
    "hist_module.": "loss.",
    "metric_proxies": "loss.loss.proxies",
}
Arrays = dict[str, NDArray[Any]]


class TinyBackbone(Backbone):
    """The reference run's network: one convolution, BatchNorm, ReLU."""

    num_features = 6

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(6)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = functional.relu(self.bn1(self.conv1(images)))
        return features


@dataclass(frozen=True)
class Run:
    """What our loop made of a case."""

    arrays: Arrays
    parts: Parts
    losses: list[float]
    distillation: list[float]
    embeddings: list[NDArray[Any]]


def arrays_of(case: str) -> Arrays:
    with np.load(REFERENCE) as archive:
        return {name.removeprefix(f"{case}/"): archive[name] for name in archive.files if name.startswith(case)}


def silent(done: int, total: int) -> None:
    """Say nothing of the progress."""


def own_name(name: str) -> str:
    prefix = next(key for key in OWN_NAMES if name.startswith(key))
    return OWN_NAMES[prefix] + name.removeprefix(prefix)


def own_state(arrays: Arrays, kind: str) -> dict[str, Tensor]:
    named = {name.removeprefix(kind): value for name, value in arrays.items() if name.startswith(kind)}
    return {own_name(name): torch.tensor(value) for name, value in named.items() if "labels" not in name}


def overrides(settings: Mapping[str, Any]) -> list[str]:
    loss = "{name: hist, hidden: 7, lr_distributions: %g, hgnn_lr_factor: %g}"
    proxies = "{name: proxy_anchor, proxy_lr: %g}"
    rate = settings["learning_rate"]
    return [
        f"optimizer={{lr: {rate}, weight_decay: {settings['weight_decay']}}}",
        f"schedule={{every_epochs: 1, gamma: {settings['lr_gamma']}, warmup_epochs: {settings['warmup_epochs']}}}",
        f"recipe={{name: distillation, momentum: {settings['ema_momentum']}, tau: {settings['ema_distill_tau']}}}",
        "loss="
        + (
            loss % (settings["hist_lr_ds"], settings["hist_lr_hgnn_factor"])
            if settings["hist_hidden"] == 7
            else proxies % (rate * settings["proxy_learning_rate_multiplier"])
        ),
        f"training.epochs={EPOCHS}",
    ]


def reference_parts(arrays: Arrays, images: Path, folder: Path) -> Parts:
    """Return real parts whose network and objective are those of the reference run."""
    settings = json.loads(str(arrays["hp/json"]))
    config = tiny_config(images, folder, *overrides(settings))
    worker = Worker.alone(torch.device("cpu"))
    parts = build_parts(tiny_spec(config), prepare_data(config, silent), worker)
    embedder = Embedder(
        TinyBackbone(),
        pooling="avg_max",
        pooling_k=1,
        dim=8,
        layer_norm=settings["embedding_layer_norm"],
        frozen_batch_norm=settings["freeze_batch_norm"],
        projector_dim=None,
        generator=torch_generator(0),
    )
    objective = config.loss.build(dim=8, num_classes=6, generator=torch_generator(0))
    state = own_state(arrays, "in/init/")
    modules = nn.ModuleDict({"student": embedder, "loss": objective})
    modules.to(dtype=state["student.backbone.conv1.weight"].dtype).load_state_dict(state)
    recipe = config.recipe.build(Ingredients(embedder, objective, 6, torch_generator(0)))
    groups = recipe.parameter_groups(config.optimizer.lr, config.optimizer.lr)
    optimizer = build_optimizer(config.optimizer, groups, worker.device)
    return dataclasses.replace(parts, embedder=embedder, recipe=recipe, groups=groups, optimizer=optimizer)


def train(arrays: Arrays, parts: Parts) -> Run:
    images, labels = torch.tensor(arrays["in/train_images"]), torch.tensor(arrays["in/train_labels"])
    run = Run(arrays, parts, [], [], [])
    for epoch in range(1, EPOCHS + 1):
        apply_warmup(parts.config.schedule, parts.groups, epoch)
        set_rates(parts.optimizer, parts.groups, rate_factor(parts.config.schedule, epoch, EPOCHS))
        parts.recipe.train()
        for step in range((epoch - 1) * STEPS, epoch * STEPS):
            rows = torch.tensor(arrays["in/batches"][step])
            terms = take_step(parts, images[rows], labels[rows], step=step)
            run.losses.append(terms.total.item())
            run.distillation.append(terms.terms["distillation"].item())
        parts.recipe.eval()
        with torch.no_grad():
            rows = parts.embedder.embed(torch.tensor(arrays["in/test_images"]))
        run.embeddings.append(functional.normalize(rows).numpy())
    return run


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(case: str, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    arrays = arrays_of(case)
    return train(arrays, reference_parts(arrays, images, tmp_path_factory.mktemp(case)))


def near(case: str, ours: Any, theirs: Any) -> None:
    relative, absolute = CASES[case]
    np.testing.assert_allclose(ours, theirs, rtol=relative, atol=absolute)


def test_losses_of_every_step(case: str, run: Run) -> None:
    near(case, run.losses, run.arrays["out/loss_history"])
    near(case, run.distillation, run.arrays["out/distill_history"])


@pytest.mark.parametrize("epoch", range(EPOCHS))
def test_test_embeddings_of_every_epoch(case: str, run: Run, epoch: int) -> None:
    near(case, run.embeddings[epoch], run.arrays[f"out/test_embeddings_epoch{epoch + 1}"])


def test_final_student_and_objective(case: str, run: Run) -> None:
    state = run.parts.recipe.state_dict()
    ours = {name.removeprefix("base."): value for name, value in state.items() if name.startswith("base.")}
    theirs = own_state(run.arrays, "out/final/")
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        near(case, ours[name].numpy(), value.numpy())


def test_final_teacher(case: str, run: Run) -> None:
    ours = run.parts.recipe.state_dict()
    theirs = own_state(run.arrays, "out/teacher/")
    teacher = {name: ours[name.replace("student.", "teacher.", 1)] for name in theirs if "student." in name}
    assert len(teacher) == 8
    for name, value in teacher.items():
        near(case, value.numpy(), theirs[name].numpy())


def test_parameter_groups(run: Run) -> None:
    named = run.parts.recipe.named_parameters()
    name_of = {id(parameter): name.removeprefix("base.") for name, parameter in named}
    ours = {
        frozenset(name_of[id(parameter)] for parameter in group["params"]): (own.lr, group["weight_decay"])
        for group, own in zip(run.parts.optimizer.param_groups, run.parts.groups, strict=True)
    }
    listed = json.loads(str(run.arrays["out/param_groups_json"]))
    theirs = {frozenset(map(own_name, one["names"])): (one["lr"], one["weight_decay"]) for one in listed}
    assert set(ours) == set(theirs)
    for names, values in theirs.items():
        assert ours[names] == pytest.approx(values)
