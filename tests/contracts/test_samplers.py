"""What every entry of the sampler table owes."""

from __future__ import annotations

import numpy as np
import pytest

from sfora_ray.data import SAMPLERS
from sfora_ray.data.sampler import Sampler
from sfora_ray.errors import DataError

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(9), 7))


def build(name: str, seed: int = 4, batch_size: int = 12) -> Sampler:
    return SAMPLERS[name].model_validate({"batch_size": batch_size}).build(LABELS, seed=seed)


@pytest.mark.parametrize("name", SAMPLERS)
def test_its_options_know_the_name_it_is_listed_under(name: str) -> None:
    assert SAMPLERS[name].model_fields["name"].default == name


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_batch_is_full_and_has_each_row_once(name: str) -> None:
    sampler = build(name)
    for epoch in (1, 2):
        for step in range(sampler.steps_per_epoch):
            rows = sampler.batch(epoch, step)
            assert rows.dtype == np.int64
            assert len(set(rows.tolist())) == 12
            assert 0 <= rows.min() <= rows.max() < len(LABELS)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_batch_is_a_function_of_seed_epoch_and_step(name: str) -> None:
    forward, backward = build(name), build(name)
    places = [(epoch, step) for epoch in (1, 2) for step in range(forward.steps_per_epoch)]
    first = {place: forward.batch(*place) for place in places}
    second = {place: backward.batch(*place) for place in reversed(places)}
    assert all(np.array_equal(first[place], second[place]) for place in places)
    assert len({first[place].tobytes() for place in places}) == len(places)


@pytest.mark.parametrize("name", SAMPLERS)
def test_members_see_other_batches(name: str) -> None:
    assert not np.array_equal(build(name, seed=4).batch(1, 0), build(name, seed=5).batch(1, 0))


@pytest.mark.parametrize("name", SAMPLERS)
def test_it_does_not_touch_the_global_stream(name: str) -> None:
    state = np.random.get_state()[1].tolist()  # type: ignore[index]
    build(name).batch(1, 0)
    assert np.random.get_state()[1].tolist() == state  # type: ignore[index]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_batch_that_cannot_be_filled_is_refused_with_one_that_can(name: str) -> None:
    with pytest.raises(DataError, match=r"Set batch_size to \d+"):
        build(name, batch_size=64)
