from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from sfora_ray.recipes import RECIPES, Recipe, average_gradients, gather_rows
from tests.recipes.parts import small_batch, small_embedder, small_objective

WORKERS, STEPS = 2, 10
ByRank = list[tuple[dict[str, tuple[dict[str, Tensor], ...]], Tensor]]


def build(recipe: str, objective: str, *, parallel: bool) -> Recipe:
    embedder = small_embedder(frozen_batch_norm=True)
    options = RECIPES[recipe].model_validate({})
    if parallel:
        built = options.build(embedder, small_objective(objective), gather=gather_rows)
    else:
        built = options.build(embedder, small_objective(objective))
    if recipe == "distillation":
        moved = {
            key: value * 1.1 if value.is_floating_point() else value
            for key, value in built.embedder.state_dict().items()
        }
        built.embedder.load_state_dict(moved)
    return built.double()


def gradients(recipe: Recipe, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
    torch.autograd.backward(recipe.losses(images.double(), labels).total)
    average_gradients(recipe.parameters())
    return {key: parameter.grad.clone() for key, parameter in recipe.named_parameters() if parameter.grad is not None}


def take_steps(recipe: Recipe, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
    optimizer = torch.optim.AdamW(recipe.parameters(), lr=1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        gradients(recipe, images, labels)
        optimizer.step()
        recipe.after_step()
    return dict(recipe.objective.state_dict())


def worker(rank: int, folder: Path, cases: list[tuple[str, str]]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORKERS)
    images, labels = (part.chunk(WORKERS)[rank] for part in small_batch())
    found = {}
    for recipe, objective in cases:
        built = build(recipe, objective, parallel=True)
        first = gradients(built, images, labels)
        found[f"{recipe}/{objective}"] = (first, take_steps(built, images, labels))
    gathered = gather_rows(torch.tensor([rank, 7 + rank]))
    torch.save((found, gathered), folder / f"rank{rank}.pt")
    dist.destroy_process_group()


CASES = [("plain", "hist"), ("plain", "proxy_anchor"), ("distillation", "hist")]


@pytest.fixture(scope="module")
def by_rank(tmp_path_factory: pytest.TempPathFactory) -> ByRank:
    folder = tmp_path_factory.mktemp("workers")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=worker, args=(rank, folder, CASES)) for rank in range(WORKERS)]
    for process in workers:
        process.start()
    for process in workers:
        process.join(timeout=120)
    assert [process.exitcode for process in workers] == [0] * WORKERS
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(WORKERS)]


@pytest.mark.parametrize(("recipe", "objective"), CASES)
def test_two_workers_have_the_gradients_of_one(recipe: str, objective: str, by_rank: ByRank) -> None:
    expected = gradients(build(recipe, objective, parallel=False), *small_batch())
    assert any(key.startswith("objective.") for key in expected)
    for found, _ in by_rank:
        actual = found[f"{recipe}/{objective}"][0]
        assert actual.keys() == expected.keys()
        for part in ("embedder.", "objective."):
            truth = torch.cat([value.flatten() for key, value in expected.items() if key.startswith(part)])
            given = torch.cat([actual[key].flatten() for key in expected if key.startswith(part)])
            assert truth.norm().item() > 0
            assert ((given - truth).norm() / truth.norm()).item() < 1e-10


@pytest.mark.parametrize(("recipe", "objective"), CASES)
def test_objectives_are_bit_equal_on_both_workers_after_ten_steps(recipe: str, objective: str, by_rank: ByRank) -> None:
    first, second = (found[f"{recipe}/{objective}"][1] for found, _ in by_rank)
    assert all(torch.equal(first[key], second[key]) for key in first)
    start = build(recipe, objective, parallel=False).objective.state_dict()
    assert any(not torch.equal(first[key], start[key]) for key in first)


def test_rows_are_joined_in_the_order_of_the_workers(by_rank: ByRank) -> None:
    for _, gathered in by_rank:
        assert gathered.tolist() == [0, 7, 1, 8]


def test_one_worker_needs_no_process_group() -> None:
    rows = torch.ones(2, 3)
    assert gather_rows(rows) is rows
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.tensor([1.0, 3.0])
    average_gradients([parameter])
    assert parameter.grad.tolist() == [1.0, 3.0]
