from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from sfora_ray.recipes import Recipe, average_gradients, gather_rows
from sfora_ray.recipes.parallel import from_first
from tests.recipes.parts import (
    ingredients,
    optimizer_of,
    recipe_options,
    small_batch,
    small_embedder,
    take_step,
    turn_gradients,
)

WORKERS, STEPS = 2, 5
Found = dict[str, tuple[list[dict[str, Tensor]], dict[str, Tensor]]]
ByRank = list[tuple[Found, Tensor, Tensor]]
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "plain/hist": ({"name": "plain"}, "hist"),
    "plain/proxy_anchor": ({"name": "plain"}, "proxy_anchor"),
    "distillation/hist": ({"name": "distillation"}, "hist"),
    "classifier/hist": ({"name": "classifier"}, "hist"),
    "cascade/pairs": ({"name": "cascade"}, "pairs"),
    "memory/pairs": ({"name": "memory", "capacity": 20, "warmup_steps": 0}, "pairs"),
    "memory/warming_up": ({"name": "memory", "capacity": 20, "warmup_steps": 2}, "pairs"),
    "two_stream/shared": ({"name": "two_stream", "reference": "shared"}, "pairs"),
    "two_stream/own": ({"name": "two_stream", "reference": "own"}, "pairs"),
    "adversarial/hist": ({"name": "distillation", "base": {"name": "adversarial", "hidden": [8]}}, "hist"),
}


OWN_STATISTICS = "distillation/own_statistics"
"""Whose student gathers statistics of its own rows, so that only the teacher is the same on all workers."""
ALL = {**CASES, OWN_STATISTICS: CASES["distillation/hist"]}


def build(case: str, *, parallel: bool) -> Recipe:
    settings, objective = ALL[case]
    embedder = small_embedder(frozen_batch_norm=case != OWN_STATISTICS)
    changes: dict[str, Any] = {"gather": gather_rows} if parallel else {}
    built = recipe_options(settings).build(ingredients(objective, embedder=embedder, **changes))
    if settings["name"] == "distillation":
        moved = {
            key: value * 1.1 if value.is_floating_point() else value
            for key, value in built.embedder.state_dict().items()
        }
        built.embedder.load_state_dict(moved)
    return built.double()


def gradients(case: str, images: Tensor, labels: Tensor, *, parallel: bool) -> list[dict[str, Tensor]]:
    return turn_gradients(build(case, parallel=parallel), images.double(), labels)


def state_after_steps(case: str, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
    recipe = build(case, parallel=True)
    optimizer = optimizer_of(recipe, lr=1e-2)
    for _ in range(STEPS):
        take_step(recipe, optimizer, images.double(), labels)
    return dict(recipe.state_dict())


def worker(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORKERS)
    images, labels = (part.chunk(WORKERS)[rank] for part in small_batch())
    found = {
        case: (gradients(case, images, labels, parallel=True), state_after_steps(case, images, labels)) for case in ALL
    }
    gathered = gather_rows(torch.tensor([rank, 7 + rank]))
    shown = from_first(torch.full((2, 3), float(rank)))
    torch.save((found, gathered, shown), folder / f"rank{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def by_rank(tmp_path_factory: pytest.TempPathFactory) -> ByRank:
    folder = tmp_path_factory.mktemp("workers")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=worker, args=(rank, folder)) for rank in range(WORKERS)]
    for process in workers:
        process.start()
    for process in workers:
        process.join(timeout=300)
    assert [process.exitcode for process in workers] == [0] * WORKERS
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(WORKERS)]


@pytest.mark.parametrize("case", CASES)
def test_two_workers_have_the_gradients_of_one(case: str, by_rank: ByRank) -> None:
    expected = gradients(case, *small_batch(), parallel=False)
    for found, *_ in by_rank:
        for turn, truth in zip(found[case][0], expected, strict=True):
            assert turn.keys() == truth.keys()
            for owner in {key.split(".backbone.")[0].split(".head.")[0] for key in truth}:
                true = torch.cat([value.flatten() for key, value in truth.items() if key.startswith(owner)])
                given = torch.cat([turn[key].flatten() for key in truth if key.startswith(owner)])
                assert true.norm().item() > 0, owner
                assert ((given - true).norm() / true.norm()).item() < 1e-10, owner


@pytest.mark.parametrize("case", CASES)
def test_all_is_bit_equal_on_both_workers_after_some_steps(case: str, by_rank: ByRank) -> None:
    first, second = (found[case][1] for found, *_ in by_rank)
    assert all(torch.equal(first[key], second[key]) for key in first)
    start = build(case, parallel=False).state_dict()
    assert any(not torch.equal(first[key], start[key]) for key in first)


def test_a_moving_average_is_the_same_on_both_workers_whatever_statistics_they_gather(by_rank: ByRank) -> None:
    first, second = (found[OWN_STATISTICS][1] for found, *_ in by_rank)
    statistics = [key for key in first if "running_" in key and key.startswith("teacher.")]
    start = build(OWN_STATISTICS, parallel=False).state_dict()
    assert statistics
    assert all(not torch.equal(first[key], start[key]) for key in statistics)
    assert all(torch.equal(first[key], second[key]) for key in first if key.startswith("teacher."))


def test_rows_are_joined_in_the_order_of_the_workers(by_rank: ByRank) -> None:
    for _, gathered, _ in by_rank:
        assert gathered.tolist() == [0, 7, 1, 8]


def test_what_a_sampler_is_shown_is_what_the_first_worker_saw(by_rank: ByRank) -> None:
    for _, _, shown in by_rank:
        assert torch.equal(shown, torch.zeros(2, 3))


def test_one_worker_needs_no_process_group() -> None:
    rows = torch.ones(2, 3)
    assert gather_rows(rows) is rows
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.tensor([1.0, 3.0])
    average_gradients([parameter])
    assert parameter.grad.tolist() == [1.0, 3.0]
