"""Random draws and grids: streams, repeats, and where they end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sfora_ray.errors import ConfigError
from sfora_ray.search import Choice, GridOptions, Integer, LogUniform, RandomOptions, Space, Told, Uniform, identity_of

CONTINUOUS = Space({"a": Uniform(low=0, high=1), "b": LogUniform(low=0.1, high=10)})
DISCRETE = Space(
    {
        "a": Choice(values=(1, 2, 3)),
        "b": Choice(values=("x", "y"), when={"a": (1, 2)}),
    }
)


def test_draws_follow_their_distributions_and_not_each_other() -> None:
    searcher = RandomOptions(seed=3).build(CONTINUOUS)
    drawn = [searcher.draw(number) for number in range(2000)]
    a = np.array([values["a"] for values in drawn])
    b = np.log(np.array([values["b"] for values in drawn]) / 0.1) / np.log(100)
    assert stats.kstest(a, "uniform").pvalue > 0.01
    assert stats.kstest(b, "uniform").pvalue > 0.01
    assert abs(stats.spearmanr(a, b).statistic) < 0.06
    assert abs(stats.spearmanr(a[1:], a[:-1]).statistic) < 0.06


def test_a_draw_depends_on_seed_and_number_alone() -> None:
    one, other = RandomOptions(seed=1).build(CONTINUOUS), RandomOptions(seed=2).build(CONTINUOUS)
    told = [Told(number=number, values=one.draw(number), value=0.5, status="finished") for number in range(5)]
    assert one.propose(7, ()) == one.propose(7, told) == one.draw(7)
    assert one.propose(7, ()) != other.propose(7, ())
    assert one.propose(7, ()) != one.propose(8, ())


def test_a_small_space_is_used_up_with_each_configuration_once() -> None:
    searcher = RandomOptions(seed=0).build(DISCRETE)
    told: list[Told] = []
    while (values := searcher.propose(len(told), told)) is not None:
        told.append(Told(number=len(told), values=values))
    assert len(told) == DISCRETE.size() == 5
    assert len({identity_of(one.values) for one in told}) == 5


def test_the_last_one_of_many_is_found() -> None:
    space = Space({"a": Integer(low=1, high=3000)})
    searcher = RandomOptions(seed=0).build(space)
    told = [Told(number=number, values={"a": number}) for number in range(1, 3001) if number != 1234]
    assert searcher.propose(0, told) == {"a": 1234}
    assert searcher.propose(0, [*told, Told(number=9999, values={"a": 1234.0})]) is None


def test_a_trial_does_not_stand_in_its_own_way() -> None:
    searcher = RandomOptions(seed=0).build(DISCRETE)
    first = searcher.propose(0, ())
    assert first is not None
    assert searcher.propose(0, [Told(number=0, values=first)]) == first


def test_a_grid_is_walked_in_order_to_its_end() -> None:
    space = Space({"b": LogUniform(low=0.1, high=10), "a": Choice(values=("x", "y"))})
    options = GridOptions(points=3)
    searcher = options.build(space)
    walked = [searcher.propose(number, ()) for number in range(7)]
    assert walked == [
        {"b": 0.1, "a": "x"},
        {"b": 0.1, "a": "y"},
        {"b": 1, "a": "x"},
        {"b": 1, "a": "y"},
        {"b": 10, "a": "x"},
        {"b": 10, "a": "y"},
        None,
    ]
    assert options.size(space) == 6


def test_a_grid_has_each_configuration_once() -> None:
    space = Space({"a": Integer(low=1, high=4, log=True), "b": Choice(values=(1,), when={"a": (9,)})})
    assert GridOptions(points=9).size(space) == 4
    assert GridOptions().size(DISCRETE) == 5


def test_a_grid_that_nobody_could_walk_is_refused() -> None:
    space = Space({path: Uniform(low=0, high=1) for path in "abcdef"})
    with pytest.raises(ConfigError, match="more than 10000 configurations"):
        GridOptions(points=10).build(space)
