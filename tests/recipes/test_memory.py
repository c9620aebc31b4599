from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sfora_ray.losses import LOSSES, Objective
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import MemoryOptions
from sfora_ray.recipes.memory import Memory, Queue
from sfora_ray.tuples import Pairs, pairs_between
from tests.recipes.parts import CLASSES, PairLoss, PairLossOptions, given_rows, ingredients, rows_as_images

REFERENCE = Path(__file__).parents[1] / "reference" / "pml_xbm.npz"
OBJECTIVES: dict[str, dict[str, Any]] = {
    "contrastive_c0": {"name": "contrastive"},
    "contrastive_cos": {
        "name": "contrastive",
        "distance": "cosine",
        "positive_margin": 1.0,
        "negative_margin": 0.5,
    },
    "triplet": {"name": "triplet", "margin": 0.2},
}


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    with np.load(REFERENCE, allow_pickle=False) as arrays:
        return dict(arrays)


def build(
    *, capacity: int, warmup: int = 0, dim: int = 4, objective: Objective | None = None, batch_weight: float = 0
) -> Memory:
    options = MemoryOptions(capacity=capacity, warmup_steps=warmup, batch_weight=batch_weight)
    made = ingredients("pairs", embedder=rows_as_images(dim))
    if objective is not None:
        made = type(made)(made.embedder, objective, CLASSES, made.generator)
    return options.build(made).double()


def objective_of(case: str, dim: int) -> Objective:
    options = LOSSES[OBJECTIVES[case]["name"]].model_validate(OBJECTIVES[case])
    return options.build(dim=dim, num_classes=CLASSES, generator=torch_generator(1))


@pytest.mark.parametrize("case", OBJECTIVES)
def test_every_step_equals_the_reference(case: str, reference: dict[str, Any]) -> None:
    hp = {key: int(reference[f"{case}/hp/{key}"]) for key in ("dim", "memory", "steps")}
    recipe = build(capacity=hp["memory"], dim=hp["dim"], objective=objective_of(case, hp["dim"]))
    for step in range(hp["steps"]):
        rows = torch.from_numpy(reference[f"{case}/in/step{step}/X"]).requires_grad_()
        loss = given_rows(recipe, rows, torch.from_numpy(reference[f"{case}/in/step{step}/labels"]))
        torch.autograd.backward(loss)
        expected = {key: reference[f"{case}/out/step{step}/{key}"] for key in ("loss", "grad_X", "memory")}
        assert loss.item() == pytest.approx(float(expected["loss"]), rel=1e-9, abs=1e-10)
        assert rows.grad is not None
        np.testing.assert_allclose(rows.grad, expected["grad_X"], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(recipe.queue.rows, expected["memory"], rtol=1e-9, atol=1e-10)
        check_queue(recipe.queue, reference, f"{case}/out/step{step}")


def check_queue(queue: Queue, reference: dict[str, Any], prefix: str) -> None:
    _, labels = queue.filled()
    assert labels.tolist() == reference[f"{prefix}/memory_labels"][: len(labels)].tolist()
    assert int(queue.cursor) == int(reference[f"{prefix}/queue_idx"])
    assert bool(queue.full) is bool(reference[f"{prefix}/filled"])


def test_rows_that_only_query_are_no_copies_of_those_that_enter(reference: dict[str, Any]) -> None:
    queue, objective = Queue(16, 4).double(), PairLoss()
    for step in range(4):
        rows, labels, prefix = (
            torch.from_numpy(reference[f"enqueue_mask/in/step{step}/X"]),
            torch.from_numpy(reference[f"enqueue_mask/in/step{step}/labels"]),
            f"enqueue_mask/out/step{step}",
        )
        enters = torch.from_numpy(np.isin(rows[:, 0], reference[f"{prefix}/memory"][:, 0]))
        assert enters.sum() == 6
        queue.push(rows[enters], labels[enters])
        partners, partner_labels = queue.filled()
        pairs = pairs_between(labels[~enters], partner_labels)
        loss = objective.compare(rows[~enters], partners, pairs)
        assert loss.item() == pytest.approx(float(reference[f"{prefix}/loss"]), rel=1e-9)
        check_queue(queue, reference, prefix)


def batches(sizes: list[int]) -> list[tuple[Tensor, Tensor]]:
    generator = torch_generator(8)
    return [
        (
            torch.randn(size, 4, dtype=torch.float64, generator=generator),
            torch.randint(CLASSES, (size,), generator=generator),
        )
        for size in sizes
    ]


def slow_loss(rows: Tensor, labels: Tensor, kept: list[tuple[Tensor, int, bool]]) -> float:
    """Loops over a batch and what is kept: row, label, and whether it is of this batch (then in its order, last)."""
    near, far = [], []
    first_own = len(kept) - len(rows)
    for i, row in enumerate(rows):
        for j, (other, label, _) in enumerate(kept):
            gap = float((row / row.norm() - other / other.norm()).norm())
            if label != labels[i]:
                far.append(max(1 - gap, 0.0))
            elif j != first_own + i:
                near.append(gap)
    active = [[value for value in values if value > 0] for values in (near, far)]
    return sum(sum(values) / len(values) for values in active if values)


def test_batches_of_unequal_sizes_equal_slow_loops() -> None:
    recipe = build(capacity=11)
    kept: list[tuple[Tensor, int, bool]] = []
    for rows, labels in batches([5, 3, 7, 1, 11, 4]):
        kept = (kept + [(row, int(label), True) for row, label in zip(rows, labels, strict=True)])[-11:]
        assert given_rows(recipe, rows, labels).item() == pytest.approx(slow_loss(rows, labels, kept), rel=1e-10)


def test_warm_up_trains_on_the_batch_and_leaves_the_queue_alone() -> None:
    recipe = build(capacity=32, warmup=2)
    cursors = []
    for step, (rows, labels) in enumerate(batches([12] * 6)):
        loss = given_rows(recipe, rows, labels)
        cursors.append((int(recipe.queue.cursor), bool(recipe.queue.full)))
        if step < 2:
            torch.testing.assert_close(loss, recipe.objective(rows, labels))
            assert not recipe.queue.rows.any()
    assert cursors == [(0, False), (0, False), (12, False), (24, False), (4, True), (16, True)]


def test_the_queue_is_full_when_the_cursor_lands_on_its_beginning() -> None:
    queue = Queue(6, 4)
    for count, (cursor, full) in zip([3, 3, 6], [(3, False), (0, True), (0, True)], strict=True):
        queue.push(torch.ones(count, 4), torch.zeros(count, dtype=torch.int64))
        assert (int(queue.cursor), bool(queue.full)) == (cursor, full)


def test_no_gradient_reaches_or_leaves_the_queue() -> None:
    recipe = build(capacity=8)
    (old, old_labels), (new, labels) = batches([4, 4])
    old.requires_grad_()
    given_rows(recipe, old, old_labels)
    torch.autograd.backward(given_rows(recipe, new.requires_grad_(), labels))
    assert old.grad is None
    assert new.grad is not None
    assert not recipe.queue.rows.requires_grad


def test_later_batches_leave_an_earlier_loss_as_it_was() -> None:
    recipe = build(capacity=4)
    (first, labels), (second, others) = batches([4, 4])
    first.requires_grad_()
    loss = given_rows(recipe, first, labels)
    expected = torch.autograd.grad(loss, first, retain_graph=True)[0]
    given_rows(recipe, second, others)
    assert torch.equal(torch.autograd.grad(loss, first)[0], expected)


def test_the_batch_may_count_beside_the_queue() -> None:
    rows, labels = batches([6])[0]
    alone, both = build(capacity=8), build(capacity=8, batch_weight=0.5)
    expected = given_rows(alone, rows, labels) + 0.5 * alone.objective(rows, labels)
    torch.testing.assert_close(given_rows(both, rows, labels), expected)


def test_a_row_and_its_own_copy_are_the_only_positives_left_out() -> None:
    seen: list[Pairs] = []

    class Notice(PairLoss):
        def compare(self, rows: Tensor, others: Tensor, tuples: Any) -> Tensor:
            seen.append(tuples)
            return super().compare(rows, others, tuples)

    recipe = build(capacity=5, objective=Notice())
    labels = torch.tensor([0, 0, 1])
    for _ in range(2):
        given_rows(recipe, torch.ones(3, 4, dtype=torch.float64), labels)
    # The second batch took places 3, 4 and 0; place 0's first row was overwritten, 1 and 2 are of the first batch.
    found = set(zip(seen[1].anchors.tolist(), seen[1].positives.tolist(), strict=True))
    assert found == {(0, 4), (0, 1), (1, 3), (1, 1), (2, 2)}


def test_a_memory_below_the_batch_is_refused() -> None:
    options = MemoryOptions(capacity=16)
    assert options.problem(PairLossOptions(), dim=4, batch_size=16) is None
    problem = options.problem(PairLossOptions(), dim=4, batch_size=17)
    assert problem is not None
    assert "capacity (16) must not be below sampler.batch_size (17)" in problem
    assert "Use 17 or more" in problem
