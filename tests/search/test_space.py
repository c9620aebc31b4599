"""Order, conditions and enumeration."""

from __future__ import annotations

from typing import Any

import pytest

from sfora_ray.search import Choice, Distribution, Integer, Space, Uniform, identity_of, root_of, value_below
from sfora_ray.search.space import MISSING, MOST_COUNTED, holds

HIST, PROXY = {"name": "hist", "hidden": 7}, {"name": "proxy_anchor"}
LOSSES = Choice(values=(HIST, PROXY))


def space(**entries: Distribution) -> Space:
    return Space({path.replace("__", "."): one for path, one in entries.items()})


def every(one: Space) -> list[dict[str, Any]]:
    found = one.all_configurations()
    assert found is not None
    return list(found)


def test_the_product_in_declared_order_the_last_entry_fastest() -> None:
    assert every(space(b=Choice(values=(2, 1)), a=Integer(low=5, high=6))) == [
        {"b": 2, "a": 5},
        {"b": 2, "a": 6},
        {"b": 1, "a": 5},
        {"b": 1, "a": 6},
    ]


def test_an_entry_is_absent_where_its_condition_does_not_hold() -> None:
    one = space(loss=LOSSES, loss__tau=Choice(values=(16, 32), when={"loss.name": ("hist",)}))
    assert every(one) == [{"loss": HIST, "loss.tau": 16}, {"loss": HIST, "loss.tau": 32}, {"loss": PROXY}]
    assert one.size() == 3


def test_conditions_hang_on_conditional_entries() -> None:
    one = space(
        a=Choice(values=(1, 2)),
        b=Choice(values=("x", "y"), when={"a": (1,)}),
        c=Choice(values=(True, False), when={"b": ("y",)}),
        d=Choice(values=(0,), when={"a": (1, 2), "b": ("x",)}),
    )
    assert every(one) == [
        {"a": 1, "b": "x", "d": 0},
        {"a": 1, "b": "y", "c": True},
        {"a": 1, "b": "y", "c": False},
        {"a": 2},
    ]


@pytest.mark.parametrize(
    ("when", "values", "expected"),
    [
        ({"a": (1,)}, {"a": 1.0}, True),
        ({"a": (1,)}, {"a": True}, False),
        ({"a": ("1",)}, {"a": 1}, False),
        ({"a.b.c": (None,)}, {"a": {"b": {"c": None}}}, True),
        ({"a.b.c": (None,)}, {"a": {"b": {}}}, False),
        ({"a.b": (1,)}, {"a": 1}, False),
        ({"a.b": (1,)}, {"a": {"b": 0}, "a.b": 1}, True),
        ({"a": (1,)}, {}, False),
        ({"a": (1,), "b": (2,)}, {"a": 1, "b": 3}, False),
        ({"a": ([1, 2],)}, {"a": [1, 2]}, True),
    ],
)
def test_a_condition_looks_at_a_value_or_below_it(when: Any, values: Any, expected: bool) -> None:
    assert holds(Choice(values=(0,), when=when), values) is expected


def test_only_what_is_there_is_asked_for() -> None:
    asked = []

    def choose(path: str, one: Distribution) -> Any:
        asked.append(path)
        return one.at(0.99)

    one = space(loss=LOSSES, loss__tau=Uniform(low=1, high=2, when={"loss.name": ("hist",)}), dim=Choice(values=(8,)))
    assert one.decide(choose) == {"loss": PROXY, "dim": 8}
    assert asked == ["loss", "dim"]


def test_what_is_endless_has_no_size() -> None:
    assert space(a=Uniform(low=0, high=1)).size() is None
    assert space(a=Uniform(low=0, high=1)).all_configurations() is None
    most = space(a=Integer(low=1, high=MOST_COUNTED))
    assert most.size() == MOST_COUNTED
    assert space(a=Integer(low=0, high=MOST_COUNTED)).size() is None


def test_paths_lead_to_the_longest_entry_and_below_it() -> None:
    entries = {"loss": 1, "loss.tau": 2}
    assert [root_of(path, entries) for path in ("loss", "loss.tau", "loss.tau.x", "loss.name", "los", "losses")] == [
        "loss",
        "loss.tau",
        "loss.tau",
        "loss",
        None,
        None,
    ]
    assert value_below({"a": {"b": 3}}, "a.b") == 3
    assert value_below(4, "") == 4
    assert value_below({"a": 3}, "a.b") is MISSING


def test_configurations_are_the_same_if_they_say_the_same() -> None:
    same = [{"a": 1, "b": [2.0, {"c": None}]}, {"b": (2, {"c": None}), "a": 1.0}]
    assert identity_of(same[0]) == identity_of(same[1])
    others = [{"a": 1}, {"a": True}, {"a": "1"}, {"a": None}, {}, {"a": 1.5}, {"a": [1]}]
    assert len({identity_of(other) for other in others}) == len(others)
