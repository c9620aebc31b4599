"""What every entry of the tables of searchers and distributions owes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sfora_ray.search import DISTRIBUTIONS, SEARCHERS, Distribution, Searcher, Space, Told, identity_of

EXAMPLES: dict[str, dict[str, Any]] = {
    "uniform": {"low": 0.0, "high": 2.0},
    "log_uniform": {"low": 0.01, "high": 2.0},
    "one_minus_log_uniform": {"low": 0.5, "high": 0.99},
    "integer": {"low": 1, "high": 4},
    "choice": {"values": ["a", {"name": "b"}, 3]},
}
SMALL = Space(
    {
        "a": DISTRIBUTIONS["choice"].model_validate({"values": [1, 2]}),
        "b": DISTRIBUTIONS["integer"].model_validate({"low": 1, "high": 3}),
    }
)


def example(name: str) -> Distribution:
    return DISTRIBUTIONS[name].model_validate(EXAMPLES[name])


LARGE = Space({name: example(name) for name in DISTRIBUTIONS})


def build(name: str, space: Space) -> Searcher:
    return SEARCHERS[name].model_validate({}).build(space)


def sequence(name: str, space: Space, count: int) -> list[Told]:
    """Return what a sweep would have tried, each trial told its end before the next but one begins."""
    told: list[Told] = []
    for number in range(count):
        values = build(name, space).propose(number, told)
        if values is None:
            break
        told = [
            Told(number=one.number, values=one.values, value=0.1 * (one.number % 7), epoch=2, status="finished")
            for one in told
        ]
        told.append(Told(number=number, values=values))
    return told


def test_there_is_an_example_of_every_distribution() -> None:
    assert set(EXAMPLES) == set(DISTRIBUTIONS)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_is_listed_under_its_own_name(name: str) -> None:
    assert DISTRIBUTIONS[name].model_fields["distribution"].default == name


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_quantiles_go_from_one_probe_to_the_last(name: str) -> None:
    one = example(name)
    probes = [value for _, value in one.probes()]
    assert (one.at(0), one.at(1)) == (probes[0], probes[-1])
    known = one.all_values()
    for step in range(51):
        value = one.at(step / 50)
        assert json.loads(json.dumps(value)) == value
        assert known is None or value in known


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_points_of_a_grid_are_different_values_of_the_distribution(name: str, count: int) -> None:
    one = example(name)
    points = one.points(count)
    assert len({identity_of(point) for point in points}) == len(points) > 0
    known = one.all_values()
    assert known is None or all(point in known for point in points)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_survives_json(name: str) -> None:
    one = example(name)
    assert type(one).model_validate(json.loads(json.dumps(one.model_dump(mode="json")))) == one


@pytest.mark.parametrize("name", SEARCHERS)
def test_a_searcher_is_listed_under_its_own_name(name: str) -> None:
    assert SEARCHERS[name].model_fields["name"].default == name


@pytest.mark.parametrize("name", SEARCHERS)
def test_a_whole_sweep_can_be_repeated_by_new_searchers(name: str) -> None:
    first = sequence(name, LARGE, 16)
    assert len(first) == 16
    assert [one.values for one in sequence(name, LARGE, 16)] == [one.values for one in first]


@pytest.mark.parametrize("name", SEARCHERS)
def test_no_configuration_is_proposed_twice(name: str) -> None:
    assert len({identity_of(one.values) for one in sequence(name, LARGE, 16)}) == 16


@pytest.mark.parametrize("name", SEARCHERS)
def test_a_space_is_used_up_and_then_there_is_none(name: str) -> None:
    options = SEARCHERS[name].model_validate({})
    tried = sequence(name, SMALL, 20)
    assert options.size(SMALL) == len(tried) == 6
    assert options.build(SMALL).propose(6, tried) is None


@pytest.mark.parametrize("name", SEARCHERS)
def test_proposals_are_json_in_the_order_of_the_space(name: str) -> None:
    for one in sequence(name, LARGE, 12):
        assert list(one.values) == list(LARGE.entries)
        assert json.loads(json.dumps(one.values, allow_nan=False)) == one.values
