from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor

from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import TwoStreamOptions
from sfora_ray.recipes.two_stream import TwoStream, reference_rows
from tests.recipes.parts import given_rows, gradients_of, ingredients, rows_as_images, small_batch

ROWS = torch.randn(11, 4, dtype=torch.float64, generator=torch_generator(6))
LABELS = torch.tensor([2, 0, 1, 0, 2, 0, 3, 0, 1, 0, 2])


def build(reference: str = "shared", share: float = 0.5) -> TwoStream:
    options = TwoStreamOptions.model_validate({"reference": reference, "share": share})
    return options.build(ingredients("pairs", embedder=rows_as_images(4))).double()


def test_the_last_of_each_class_are_references() -> None:
    assert reference_rows(LABELS, 0.4).nonzero().flatten().tolist() == [7, 8, 9, 10]
    assert reference_rows(LABELS, 0.8).nonzero().flatten().tolist() == [3, 4, 5, 7, 8, 9, 10]


@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=30), share=st.floats(0.01, 0.99))
def test_both_streams_share_every_class_of_two_or_more(labels: list[int], share: float) -> None:
    mask = reference_rows(torch.tensor(labels), share).tolist()
    for label in set(labels):
        parts = [kept for kept, own in zip(mask, labels, strict=True) if own == label]
        assert (True in parts) == (len(parts) > 1)
        assert False in parts
        assert abs(sum(parts) - share * len(parts)) <= 1
        assert parts == sorted(parts)


def slow_loss(queries: Tensor, references: Tensor, query_labels: Tensor, reference_labels: Tensor) -> float:
    near: list[float] = []
    far: list[float] = []
    for i, query in enumerate(queries):
        for j, reference in enumerate(references):
            gap = float((query / query.norm() - reference / reference.norm()).norm())
            (near if query_labels[i] == reference_labels[j] else far).append(gap)
    hinged = [1 - gap for gap in far if gap < 1]
    return sum(near) / len(near) + (sum(hinged) / len(hinged) if hinged else 0)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_streams_of_different_lengths_equal_slow_loops(share: float) -> None:
    order = torch.randperm(11, generator=torch_generator(7))
    rows, labels = ROWS[order], LABELS[order]
    mask = reference_rows(labels, share)
    assert mask.sum() != (~mask).sum()
    expected = slow_loss(rows[~mask], rows[mask], labels[~mask], labels[mask])
    assert given_rows(build(share=share), rows, labels).item() == pytest.approx(expected, rel=1e-12)


def test_equal_positions_are_no_self_match() -> None:
    # Query 0 and reference 0 are of one class, and they are the only positive pair.
    rows = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]], dtype=torch.float64)
    assert given_rows(build(), rows, torch.tensor([4, 4])).item() == pytest.approx(2**0.5)


def test_no_shared_class_gives_no_loss_and_no_gradient() -> None:
    rows = ROWS[:3].clone().requires_grad_()
    loss = given_rows(build(), rows, torch.tensor([0, 1, 2]))
    torch.autograd.backward(loss)
    assert loss.item() == 0
    assert rows.grad is not None
    assert not rows.grad.any()


def test_a_second_network_starts_as_a_copy_and_gets_the_gradient_of_references() -> None:
    recipe = TwoStreamOptions(reference="own").build(ingredients("pairs"))
    assert recipe.second is not None
    student = recipe.embedder.state_dict()
    assert all(torch.equal(value, student[key]) for key, value in recipe.second.state_dict().items())
    (turn,) = recipe.turns(*small_batch())
    torch.autograd.backward(turn.terms.total)
    mine, theirs = gradients_of(recipe.embedder.named_parameters()), gradients_of(recipe.second.named_parameters())
    assert mine.keys() == theirs.keys() == dict(recipe.embedder.named_parameters()).keys()
    assert not torch.equal(mine["head.weight"], theirs["head.weight"])


def test_two_equal_networks_split_the_gradient_of_one() -> None:
    shared, own = build(), build("own")
    for recipe in (shared, own):
        torch.autograd.backward(given_rows(recipe, ROWS + 0.1, LABELS))
    whole = shared.embedder.get_parameter("scale").grad
    assert own.second is not None
    parts = [network.get_parameter("scale").grad for network in (own.embedder, own.second)]
    assert whole is not None
    torch.testing.assert_close(whole, sum(part for part in parts if part is not None))


def test_the_second_network_learns_at_the_rates_of_the_student() -> None:
    recipe = TwoStreamOptions(reference="own").build(ingredients("pairs"))
    groups = {group.name: group for group in recipe.parameter_groups(1e-4, 1e-3)}
    student = [name for name in groups if not name.startswith("reference.")]
    for name in student:
        other = groups[f"reference.{name}"]
        assert (other.lr, other.decays, other.warms_up) == (
            groups[name].lr,
            groups[name].decays,
            groups[name].warms_up,
        )
    assert len(groups) == 2 * len(student)
