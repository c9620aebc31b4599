from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sfora_ray.losses.distances import euclidean
from sfora_ray.randomness import torch_generator


def drawn(count: int, seed: int) -> Tensor:
    return torch.randn(count, 5, dtype=torch.float64, generator=torch_generator(seed))


def slow(rows: Tensor, others: Tensor) -> Tensor:
    return torch.stack([torch.stack([(row - other).square().sum().sqrt() for other in others]) for row in rows])


def test_distances_and_both_gradients_equal_slow_loops() -> None:
    rows, others, weights = drawn(4, 1), drawn(7, 2), drawn(4, 3).repeat(1, 2)[:, :7]
    rows.requires_grad_()
    others.requires_grad_()
    fast, exact = euclidean(rows, others), slow(rows, others)
    torch.testing.assert_close(fast, exact, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad((table * weights).sum(), (rows, others)) for table in (fast, exact)]
    for of_fast, of_exact in zip(*gradients, strict=True):
        torch.testing.assert_close(of_fast, of_exact, rtol=1e-12, atol=1e-12)


def test_gradcheck_of_rows_compared_with_themselves() -> None:
    rows, above = drawn(5, 4).requires_grad_(), torch.ones(5, 5).triu(1).bool()
    assert torch.autograd.gradcheck(lambda x: euclidean(x, x)[above], (rows,))


def test_equal_rows_are_exactly_nothing_apart_and_have_no_gradient_between_them() -> None:
    rows = drawn(40, 5).float().repeat(2, 1).requires_grad_()
    distances = euclidean(rows, rows)
    assert not distances.diagonal(40).any()
    torch.autograd.backward(distances.diagonal(40).sum())
    assert rows.grad is not None
    assert not rows.grad.any()


def test_a_gradient_nobody_asked_for_is_not_made() -> None:
    rows, memory = drawn(3, 6).requires_grad_(), drawn(4, 7)
    torch.autograd.backward(euclidean(rows, memory).sum())
    assert rows.grad is not None
    assert memory.grad is None


@pytest.mark.parametrize("count", [0, 3])
def test_no_rows_at_all(count: int) -> None:
    assert euclidean(drawn(count, 1), drawn(0, 2)).shape == (count, 0)
