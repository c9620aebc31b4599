"""What every entry of the loss table owes."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from sfora_ray.card import Card
from sfora_ray.errors import ConfigError
from sfora_ray.losses import LOSSES, Objective, TupleObjective
from sfora_ray.randomness import torch_generator

DIM, CLASSES = 6, 9


def build(name: str, seed: int = 0) -> Objective:
    return LOSSES[name].model_validate({}).build(dim=DIM, num_classes=CLASSES, generator=torch_generator(seed))


def batch(labels: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.randn(len(labels), DIM, generator=torch_generator(9)) * 5
    return rows.requires_grad_(), torch.tensor(labels)


EDGES = {
    "regular": [0, 0, 3, 3, 5, 5, 8, 8],
    "all different": [0, 1, 2, 3, 4, 5, 6, 7],
    "one class": [4, 4, 4, 4],
    "a singleton": [8, 2, 2, 0, 0],
    "two rows": [1, 3],
}


@pytest.mark.parametrize("name", LOSSES)
def test_its_options_know_the_name_it_is_listed_under(name: str) -> None:
    assert LOSSES[name].model_fields["name"].default == name
    assert isinstance(LOSSES[name].needs_positives, bool)


@pytest.mark.parametrize("name", LOSSES)
def test_its_card_is_filled_in(name: str) -> None:
    card = LOSSES[name].card
    assert isinstance(card, Card)
    assert all((card.title, card.paper, card.checked, card.differences))


@pytest.mark.parametrize("name", LOSSES)
def test_it_takes_tuples_if_it_says_so(name: str) -> None:
    assert isinstance(build(name), TupleObjective) == LOSSES[name].takes_tuples


def loss_of(objective: Objective, rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | None:
    """Return the loss, or None where the objective says which batch it needs."""
    refusal = ""
    try:
        loss: torch.Tensor = objective(rows, labels)
    except ConfigError as error:
        refusal = str(error)
    else:
        return loss
    assert "batch" in refusal
    return None


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("edge", EDGES)
def test_edge_batches_give_a_finite_loss_that_teaches(name: str, edge: str) -> None:
    rows, labels = batch(EDGES[edge])
    loss = loss_of(build(name), rows, labels)
    if loss is None:
        return
    torch.autograd.backward(loss)
    assert loss.shape == ()
    assert loss.dtype == torch.float32
    assert torch.isfinite(loss)
    assert rows.grad is not None
    assert torch.isfinite(rows.grad).all()
    if edge == "regular" or not LOSSES[name].needs_positives:
        assert float(rows.grad.abs().max()) > 0


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("edge", EDGES)
def test_the_order_of_a_batch_changes_nothing(name: str, edge: str) -> None:
    objective = build(name).double()
    rows, labels = batch(EDGES[edge])
    order = torch.randperm(len(labels), generator=torch_generator(3))
    if name == "n_pairs":  # its anchors are the first of their class, so that only classes may change places
        order = torch.cat([(labels == label).nonzero()[:, 0] for label in dict.fromkeys(labels[order].tolist())])
    loss = loss_of(copy.deepcopy(objective), rows.double(), labels)
    other = loss_of(copy.deepcopy(objective), rows.double()[order], labels[order])
    if loss is None or other is None:
        assert loss is other
        return
    torch.testing.assert_close(loss, other)


@pytest.mark.parametrize("name", LOSSES)
def test_zero_rows_and_duplicates_stay_finite(name: str) -> None:
    rows = torch.zeros(4, DIM)
    rows[2:] = 1.0
    rows.requires_grad_()
    loss = build(name)(rows, torch.tensor([0, 0, 1, 1]))
    loss.backward()
    assert torch.isfinite(loss)
    assert rows.grad is not None
    assert torch.isfinite(rows.grad).all()


@pytest.mark.parametrize("name", LOSSES)
def test_every_parameter_is_in_exactly_one_group_that_warms_up(name: str) -> None:
    objective = build(name)
    groups = objective.parameter_groups(1e-4)
    grouped = [id(parameter) for group in groups for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(parameter) for parameter in objective.parameters())
    assert len({group.name for group in groups}) == len(groups)
    assert all(group.warms_up for group in groups)


LEARNING = [name for name in LOSSES if list(build(name).parameters())]
"""Objectives that learn something themselves."""


@pytest.mark.parametrize("name", LEARNING)
def test_every_parameter_moves(name: str) -> None:
    objective = build(name)
    before = {key: value.detach().clone() for key, value in objective.named_parameters()}
    groups = [
        {"params": list(group.parameters), "lr": group.lr, "weight_decay": 1e-4 * group.decays}
        for group in objective.parameter_groups(1e-4)
    ]
    optimizer = torch.optim.AdamW(groups)
    for _ in range(2):
        optimizer.zero_grad()
        objective(*batch([0, 0, 3, 3, 5, 5, 8, 8])).backward()
        optimizer.step()
    for key, value in objective.named_parameters():
        assert (value - before[key]).abs().max().item() > 0, key


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_parameters_and_loss_stay_float32_under_autocast(name: str, half: torch.dtype) -> None:
    objective = build(name)
    rows, labels = batch([0, 0, 3, 3])
    plain = copy.deepcopy(objective)(rows, labels)
    with torch.autocast("cpu", dtype=half):
        loss = objective(rows, labels)
        objective(rows.detach().to(half), labels)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, plain)
    assert all(parameter.dtype == torch.float32 for parameter in objective.parameters())


@pytest.mark.parametrize("name", LEARNING)
def test_its_start_is_named_by_the_generator_alone(name: str) -> None:
    before = torch.get_rng_state()
    first, second, other = build(name, 1), build(name, 1), build(name, 2)
    assert torch.equal(before, torch.get_rng_state())
    pairs = list(zip(first.parameters(), second.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert any(not torch.equal(a, c) for a, _, c in pairs)


@pytest.mark.parametrize("name", LOSSES)
def test_it_travels(name: str) -> None:
    objective = build(name)
    rows, labels = batch([0, 0, 3, 3])
    twin = pickle.loads(pickle.dumps(objective))
    other = build(name, 5)
    other.load_state_dict(objective.state_dict())
    loss = copy.deepcopy(objective)(rows, labels)
    assert torch.equal(twin(rows, labels), loss)
    assert torch.equal(other(rows, labels), loss)
