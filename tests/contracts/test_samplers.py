"""What every entry of the sampler table owes."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from pydantic import ValidationError

from sfora_ray.arrays import Float32, l2_normalize
from sfora_ray.errors import DataError
from sfora_ray.samplers import SAMPLERS, Sampler, SamplerOptions

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(9), 7))
COARSE = LABELS // 3
LEARNS = [name for name in SAMPLERS if name in ("mining_weighted", "n_pairs")]
"""Those that ask for embeddings before an epoch."""
WITH_REPLACEMENT = {"mining_weighted"}


def options(name: str, batch_size: int = 16) -> SamplerOptions:
    return SAMPLERS[name].model_validate({"batch_size": batch_size})


def build(name: str, seed: int = 4, batch_size: int = 16) -> Sampler:
    return options(name, batch_size).build(LABELS, coarse=COARSE, seed=seed)


def embeddings(number: int, seed: int = 0) -> Float32:
    return l2_normalize(np.random.default_rng(seed).normal(size=(number, 6)).astype(np.float32))


def informed(sampler: Sampler, epoch: int, seed: int = 0) -> Sampler:
    return sampler.informed(epoch, embeddings(len(sampler.wants(epoch)), seed))


@pytest.mark.parametrize("name", SAMPLERS)
def test_its_options_know_the_name_it_is_listed_under_and_where_it_comes_from(name: str) -> None:
    assert SAMPLERS[name].model_validate({}).name == SAMPLERS[name].model_fields["name"].default == name
    card = SAMPLERS[name].card
    assert all((card.title, card.paper, card.checked, card.differences))


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("batch_size", [1, 0, -4])
def test_a_batch_of_one_is_refused_at_load(name: str, batch_size: int) -> None:
    with pytest.raises(ValidationError, match=r"batch_size\n.*greater than or equal to 2"):
        options(name, batch_size)


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_batch_is_full_and_has_each_row_once_unless_drawn_with_replacement(name: str) -> None:
    sampler = build(name)
    assert sampler.steps_per_epoch >= 1
    for epoch in (1, 2):
        this = informed(sampler, epoch)
        for step in range(this.steps_per_epoch):
            rows = this.batch(epoch, step)
            assert rows.dtype == np.int64
            assert rows.shape == (16,)
            assert name in WITH_REPLACEMENT or len(set(rows.tolist())) == 16
            assert 0 <= rows.min() <= rows.max() < len(LABELS)


@pytest.mark.parametrize("name", SAMPLERS)
def test_images_of_a_class_are_as_many_as_promised_and_side_by_side(name: str) -> None:
    each = options(name).images_per_class
    if each is None:
        return
    sampler = informed(build(name), 1)
    for step in range(sampler.steps_per_epoch):
        labels = LABELS[sampler.batch(1, step)].reshape(-1, each)
        assert (labels == labels[:, :1]).all()
        assert len(np.unique(labels[:, 0])) == len(labels)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_batch_is_a_function_of_seed_epoch_step_and_what_was_shown(name: str) -> None:
    places = [(epoch, step) for epoch in (1, 2) for step in range(build(name).steps_per_epoch)]
    forward = {epoch: informed(build(name), epoch) for epoch in (1, 2)}
    backward = {epoch: informed(pickle.loads(pickle.dumps(build(name))), epoch) for epoch in (2, 1)}
    first = {place: forward[place[0]].batch(*place) for place in places}
    second = {place: backward[place[0]].batch(*place) for place in reversed(places)}
    assert all(np.array_equal(first[place], second[place]) for place in places)
    assert len({first[place].tobytes() for place in places}) == len(places)


@pytest.mark.parametrize("name", SAMPLERS)
def test_members_see_other_batches(name: str) -> None:
    first, other = (informed(build(name, seed=seed), 1).batch(1, 0) for seed in (4, 5))
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", SAMPLERS)
def test_it_asks_for_unique_rows_each_epoch_or_never(name: str) -> None:
    sampler = build(name)
    for epoch in (1, 2):
        rows = sampler.wants(epoch)
        assert rows.dtype == np.int64
        assert len(set(rows.tolist())) == len(rows)
        assert bool(len(rows)) == (name in LEARNS)
        np.testing.assert_array_equal(rows, sampler.wants(epoch))


@pytest.mark.parametrize("name", LEARNS)
def test_one_that_learns_needs_to_be_shown_the_very_epoch(name: str) -> None:
    sampler = build(name)
    with pytest.raises(AssertionError, match="must be informed"):
        sampler.batch(1, 0)
    with pytest.raises(AssertionError, match="informed for epoch 1, asked for 2"):
        informed(sampler, 1).batch(2, 0)
    assert not np.array_equal(informed(sampler, 1, seed=0).batch(1, 0), informed(sampler, 1, seed=1).batch(1, 0))


@pytest.mark.parametrize("name", SAMPLERS)
def test_it_does_not_touch_the_global_stream(name: str) -> None:
    state = np.random.get_state()[1].tolist()  # type: ignore[index]
    informed(build(name), 1).batch(1, 0)
    assert np.random.get_state()[1].tolist() == state  # type: ignore[index]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_batch_that_cannot_be_filled_is_refused_with_one_that_can(name: str) -> None:
    with pytest.raises(DataError, match=rf"sampler {name}: .*Set batch_size to \d+") as caught:
        build(name, batch_size=64)
    proposed = re.search(r"Set batch_size to (\d+)", str(caught.value))
    assert proposed is not None
    build(name, batch_size=int(proposed[1]))
