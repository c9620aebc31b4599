from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from sfora_ray.errors import WeightsError
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import Recipe
from sfora_ray.recipes.base import LossTerms
from sfora_ray.recipes.distillation import (
    Distillation,
    DistillationOptions,
    relational_distillation,
    update_average,
)
from tests.recipes.parts import PairLossOptions, ingredients, small_batch, small_embedder

REFERENCE = Path(__file__).parents[1] / "reference" / "ema_distill.npz"


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    with np.load(REFERENCE, allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("case", ["c0", "c1_dup", "c2_n2", "c4_identical"])
def test_loss_and_gradient_equal_the_reference(case: str, reference: dict[str, Any]) -> None:
    student = torch.from_numpy(reference[f"{case}/in/student"]).requires_grad_()
    teacher = torch.from_numpy(reference[f"{case}/in/teacher"])
    tau = float(reference[f"{case}/hp/tau"])
    loss = relational_distillation(student, teacher, tau=tau)
    torch.autograd.backward(loss)
    floor = relational_distillation(teacher, teacher, tau=tau)
    assert loss.item() == pytest.approx(float(reference[f"{case}/out/loss"]), rel=1e-9, abs=1e-10)
    assert floor.item() == pytest.approx(float(reference[f"{case}/out/loss_at_teacher"]), rel=1e-9, abs=1e-10)
    assert student.grad is not None
    np.testing.assert_allclose(student.grad.numpy(), reference[f"{case}/out/grad_student"], rtol=1e-9, atol=1e-10)


def slow_relations(rows: Tensor, i: int, tau: float) -> list[float]:
    unit = [row / row.norm() for row in rows.double()]
    weights = [math.exp(float(unit[i] @ unit[j]) / tau) if j != i else 0.0 for j in range(len(rows))]
    return [weight / sum(weights) for weight in weights]


def test_loss_equals_slow_loops() -> None:
    student = torch.randn(7, 4, dtype=torch.float64, generator=torch_generator(0))
    teacher = torch.randn(7, 9, dtype=torch.float64, generator=torch_generator(1))
    total = 0.0
    for i in range(7):
        p, q = slow_relations(teacher, i, 0.3), slow_relations(student, i, 0.3)
        total -= sum(p[j] * math.log(q[j]) for j in range(7) if j != i) / 7
    assert relational_distillation(student, teacher, tau=0.3).item() == pytest.approx(total, rel=1e-12)


def test_gradcheck_and_no_gradient_to_the_teacher() -> None:
    student = torch.randn(5, 3, dtype=torch.float64, generator=torch_generator(2), requires_grad=True)
    teacher = torch.randn(5, 3, dtype=torch.float64, generator=torch_generator(3), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: relational_distillation(x, teacher.detach(), tau=0.2), (student,))
    torch.autograd.backward(relational_distillation(student, teacher, tau=0.2))
    assert teacher.grad is None


@pytest.mark.parametrize("rows", [1, 2])
def test_one_or_two_rows_have_no_relations_to_teach(rows: int) -> None:
    student = torch.randn(rows, 3, generator=torch_generator(4), requires_grad=True)
    loss = relational_distillation(student, torch.randn(rows, 3, generator=torch_generator(5)), tau=0.1)
    torch.autograd.backward(loss)
    assert loss.item() == 0
    assert student.grad is not None
    assert torch.equal(student.grad, torch.zeros(rows, 3))


def load(network: nn.Module, reference: dict[str, Any], prefix: str) -> None:
    keys = network.state_dict()
    network.load_state_dict({key: torch.from_numpy(np.array(reference[f"{prefix}/{key}"])) for key in keys})


@pytest.mark.parametrize("case", ["ema_m0.9", "ema_m0.999"])
def test_moving_average_equals_the_reference(case: str, reference: dict[str, Any]) -> None:
    student, teacher = (nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)).double() for _ in range(2))
    load(teacher, reference, f"{case}/in/step0")
    for step in range(1, int(reference[f"{case}/hp/steps"]) + 1):
        load(student, reference, f"{case}/in/step{step}")
        update_average(teacher, student, momentum=float(reference[f"{case}/hp/momentum"]))
        for key, value in teacher.state_dict().items():
            np.testing.assert_allclose(value, reference[f"{case}/out/step{step}/{key}"], rtol=1e-9, atol=1e-10)


def build(objective: str = "hist", **changes: Any) -> Distillation:
    return DistillationOptions.model_validate(changes).build(ingredients(objective))


def losses(recipe: Recipe) -> LossTerms:
    (turn,) = recipe.turns(*small_batch())
    return turn.terms


def test_teacher_starts_as_the_student_and_follows_it() -> None:
    recipe = build(momentum=0.75)
    start = {key: value.detach().clone() for key, value in recipe.embedder.named_parameters()}
    optimizer = torch.optim.AdamW(recipe.embedder.parameters(), lr=1e-2)
    torch.autograd.backward(losses(recipe).total)
    optimizer.step()
    teacher = dict(recipe.teacher.named_parameters())
    assert all(torch.equal(teacher[key], start[key]) for key in start)
    recipe.after_step()
    for key, value in recipe.embedder.named_parameters():
        torch.testing.assert_close(teacher[key], 0.75 * start[key] + 0.25 * value)
    for key, buffer in recipe.embedder.named_buffers():
        assert torch.equal(recipe.teacher.get_buffer(key), buffer)


def test_a_teacher_equal_to_the_student_sends_no_gradient_at_the_first_step() -> None:
    recipe = DistillationOptions().build(ingredients(embedder=small_embedder(frozen_batch_norm=True)))
    images, labels = small_batch()
    with_teacher = losses(recipe)
    gradient = torch.autograd.grad(with_teacher.total, recipe.embedder.head.weight, retain_graph=True)[0]
    alone = recipe.objective(recipe.embedder(images), labels)
    plain = torch.autograd.grad(alone, recipe.embedder.head.weight)[0]
    torch.testing.assert_close(gradient, plain, rtol=1e-4, atol=1e-5)
    assert with_teacher.terms["distillation"].item() > 0


def test_teacher_never_trains() -> None:
    recipe = build()
    for mode in (True, False, True):
        recipe.train(mode)
        assert recipe.embedder.training is mode
        assert not any(module.training for module in recipe.teacher.modules())
    buffers = {key: value.clone() for key, value in recipe.teacher.named_buffers()}
    torch.autograd.backward(losses(recipe).total)
    assert all(torch.equal(value, buffers[key]) for key, value in recipe.teacher.named_buffers())
    assert all(parameter.grad is None for parameter in recipe.teacher.parameters())


def test_total_is_the_weighted_sum() -> None:
    terms = losses(build(weight=0.25))
    expected = terms.terms["objective"] + 0.25 * terms.terms["distillation"]
    torch.testing.assert_close(terms.total.detach(), expected)


def test_a_trained_member_teaches_and_stays_as_it_is(tmp_path: Path) -> None:
    trained = small_embedder(seed=9)
    path = tmp_path / "model.safetensors"
    save_file(trained.state_dict(), path)
    recipe = build(teacher="checkpoint", checkpoint=path)
    torch.autograd.backward(losses(recipe).total)
    recipe.after_step()
    for key, value in recipe.teacher.state_dict().items():
        assert torch.equal(value, trained.state_dict()[key]), key
    assert not torch.equal(recipe.teacher.head.weight, recipe.embedder.head.weight)


def test_a_teacher_of_another_width_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(small_embedder(dim=11).state_dict(), path)
    with pytest.raises(WeightsError, match=r"'head\.weight' of shape \(11, 256\) instead of \(6, 256\)"):
        build(teacher="checkpoint", checkpoint=path)


@pytest.mark.parametrize("changes", [{"teacher": "checkpoint"}, {"checkpoint": "model.safetensors"}])
def test_checkpoint_and_teacher_go_together(changes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        DistillationOptions.model_validate(changes)


def test_the_recipe_inside_is_refused_as_if_it_stood_alone() -> None:
    inside = DistillationOptions.model_validate({"base": {"name": "memory", "capacity": 4}})
    problem = inside.problem(PairLossOptions(), dim=6, batch_size=8)
    assert problem is not None
    assert problem.startswith("base.capacity (4) must not be below")


def test_a_turn_in_which_the_student_rests_has_no_teacher() -> None:
    recipe = build(base={"name": "adversarial", "hidden": [8]})
    generator, metric = (turn.terms.terms for turn in recipe.turns(*small_batch()))
    assert "distillation" not in generator
    assert "distillation" in metric


def test_distillation_relates_every_image_that_two_streams_see() -> None:
    recipe = build(base={"name": "two_stream", "reference": "own"}, objective="pairs")
    student, teacher = (network(small_batch()[0]) for network in (small_embedder(), small_embedder().eval()))
    expected = relational_distillation(student, teacher, tau=0.1)
    torch.testing.assert_close(losses(recipe).terms["distillation"], expected.detach())
