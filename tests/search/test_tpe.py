"""Optuna behind the contract: the same history gives the same proposal, and what is told counts as it should."""

from __future__ import annotations

import importlib.util
import logging
from typing import Any

import numpy as np
import optuna
import pytest

from sfora_ray.errors import ConfigError
from sfora_ray.search import (
    Choice,
    Integer,
    LogUniform,
    OneMinusLogUniform,
    OptunaOptions,
    RandomOptions,
    Space,
    Status,
    Told,
    Uniform,
)
from sfora_ray.search.tpe import _frozen

STATE = optuna.trial.TrialState
SPACE = Space(
    {
        "loss": Choice(values=({"name": "hist"}, {"name": "proxy_anchor"})),
        "loss.tau": LogUniform(low=1, high=100, when={"loss.name": ["hist"]}),
        "recipe.momentum": OneMinusLogUniform(low=0.9, high=0.9999),
        "sampler.samples": Integer(low=2, high=9, step=3),
        "model.dim": Integer(low=8, high=512, log=True),
    }
)
LINE = Space({"x": Uniform(low=0, high=1)})


def history(count: int, space: Space = SPACE) -> list[Told]:
    draws = RandomOptions(seed=9).build(space)
    endings: tuple[Status, ...] = ("finished", "stopped", "non_finite", "failed", "")
    return [
        Told(
            number=number,
            values=draws.draw(number),
            value=None if not endings[number % 5] else 0.0 if number % 5 in (2, 3) else 0.5 + number / 100,
            epoch=2 + number % 3,
            status=endings[number % 5],
        )
        for number in range(count)
    ]


def proposed(told: list[Told], number: int, space: Space = SPACE, seed: int = 0) -> dict[str, Any]:
    values = OptunaOptions(seed=seed, startup_trials=4).build(space).propose(number, told)
    assert values is not None
    return values


def test_the_same_history_in_any_order_gives_the_same_proposal() -> None:
    told = history(20)
    assert proposed(told, 20) == proposed(told[::-1], 20)
    assert proposed(told, 20) != proposed(told, 21)
    assert proposed(told, 20) != proposed(told, 20, seed=1)


def test_the_state_is_in_what_is_told_not_in_the_searcher() -> None:
    searcher = OptunaOptions(startup_trials=4).build(SPACE)
    told = history(15)
    first = searcher.propose(15, told)
    for number in range(16, 20):
        searcher.propose(number, told)
    assert searcher.propose(15, told) == first == OptunaOptions(startup_trials=4).build(SPACE).propose(15, told)


def test_it_draws_at_random_until_enough_have_ended() -> None:
    random = RandomOptions(seed=0).build(SPACE)
    few, enough = history(4), history(6)
    assert sum(one.value is not None for one in few) == 4
    assert OptunaOptions(startup_trials=5).build(SPACE).propose(9, few) == random.draw(9)
    assert sum(one.value is not None for one in enough) == 5
    assert OptunaOptions(startup_trials=5).build(SPACE).propose(9, enough) != random.draw(9)


def test_proposals_lie_in_the_space_and_conditions_hold() -> None:
    told = history(12)
    for number in range(12, 40):
        values = proposed(told, number)
        assert ("loss.tau" in values) == (values["loss"]["name"] == "hist")
        assert values["sampler.samples"] in (2, 5, 8)
        assert isinstance(values["model.dim"], int)
        assert 0.9 <= values["recipe.momentum"] <= 0.9999
        told.append(Told(number=number, values=values, value=0.5, epoch=3, status="finished"))


def test_it_finds_a_peak_better_than_chance() -> None:
    def search(options: OptunaOptions | RandomOptions) -> float:
        searcher, told = options.build(LINE), list[Told]()
        for number in range(40):
            values = searcher.propose(number, told)
            assert values is not None
            told.append(
                Told(number=number, values=values, value=1 - (values["x"] - 0.3) ** 2, epoch=1, status="finished")
            )
        return float(np.mean([abs(one.values["x"] - 0.3) for one in told[20:]]))

    by_chance = [search(RandomOptions(seed=seed)) for seed in range(4)]
    by_what_was_seen = [search(OptunaOptions(seed=seed)) for seed in range(4)]
    assert np.mean(by_chance) == pytest.approx((0.3**2 + 0.7**2) / 2, abs=0.05)
    assert np.mean(by_what_was_seen) < 0.6 * np.mean(by_chance)


@pytest.mark.parametrize(
    ("status", "value", "state", "steps"),
    [
        ("finished", 0.7, STATE.COMPLETE, {}),
        ("stopped", 0.7, STATE.PRUNED, {3: 0.7}),
        ("non_finite", 0.0, STATE.PRUNED, {0: 0.0}),
        ("failed", 0.0, STATE.PRUNED, {0: 0.0}),
        ("", None, STATE.RUNNING, {}),
    ],
)
def test_how_an_ending_is_told(status: Status, value: float | None, state: Any, steps: dict[int, float]) -> None:
    values = SPACE.decide(lambda _, one: one.at(0.4))
    frozen = _frozen(SPACE, Told(number=0, values=values, value=value, epoch=3, status=status))
    assert (frozen.state, frozen.intermediate_values) == (state, steps)
    assert frozen.params["loss"] == 0
    assert frozen.params["recipe.momentum"] == pytest.approx(1 - values["recipe.momentum"])


def test_failures_rank_behind_everything_that_has_a_score() -> None:
    good = [Told(number=n, values={"x": 0.5 + n / 100}, value=0.6, epoch=1, status="stopped") for n in range(6)]
    bad = [Told(number=n, values={"x": 0.1 + n / 1000}, value=0.0, epoch=9, status="non_finite") for n in range(6, 20)]
    near_bad = [abs(proposed(good + bad, number, LINE)["x"] - 0.11) < 0.05 for number in range(20, 40)]
    assert sum(near_bad) <= 4


def test_what_runs_is_not_proposed_again_and_keeps_others_away() -> None:
    ended = [Told(number=n, values={"x": n / 10}, value=1 - abs(n / 10 - 0.5), status="finished") for n in range(10)]
    free = [proposed(ended, number, LINE)["x"] for number in range(20, 40)]
    running = [Told(number=40 + n, values={"x": 0.4 + n / 100}) for n in range(20)]
    kept_away = [proposed(ended + running, number, LINE)["x"] for number in range(20, 40)]
    assert sum(0.4 <= x <= 0.6 for x in kept_away) < sum(0.4 <= x <= 0.6 for x in free)


def test_a_small_space_is_used_up() -> None:
    space = Space({"a": Choice(values=(1, 2, 3)), "b": Choice(values=("x", "y"), when={"a": (1, 2)})})
    searcher, told = OptunaOptions(startup_trials=2).build(space), list[Told]()
    while (values := searcher.propose(len(told), told)) is not None:
        told.append(Told(number=len(told), values=values, value=0.5, epoch=1, status="finished"))
    assert len(told) == 5


def test_it_logs_nothing(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        proposed(history(10), 10)
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r'pip install "sfora-ray\[optuna\]"'):
        OptunaOptions().build(LINE)
