"""Files, what they name, and what the command line changes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfora_ray.config.load import load_config
from sfora_ray.config.load_sweep import load_sweep
from sfora_ray.config.overrides import with_values
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.config.yaml_text import dump_yaml
from sfora_ray.errors import ConfigError
from sfora_ray.search import Distribution, Integer, LogUniform
from tests.config.test_sweep import sweep_values
from tests.tiny import tiny_values

ONLY_HIST = sweep_values()["space"] | {"loss": {"distribution": "choice", "values": [{"name": "hist"}]}}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Write a pack, and beside it a folder for sweeps."""
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs/tiny.yaml").write_text(dump_yaml(tiny_values(Path("photos"), Path("here"))))
    (tmp_path / "search").mkdir()
    return tmp_path / "search"


def loaded(place: Path, *overrides: str, **changes: Any) -> SweepConfig:
    path = place / "sweep.yaml"
    path.write_text(dump_yaml(sweep_values(**{"pack": "../packs/tiny.yaml", **changes})))
    return load_sweep(path, overrides)


def refusal(place: Path, *overrides: str, **changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(place, *overrides, **changes)
    return str(caught.value)


def test_the_pack_is_read_from_beside_the_sweep(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert loaded(place).pack == load_config(place.parent / "packs/tiny.yaml")
    assert loaded(place, pack=str(place.parent / "packs/tiny.yaml")) == loaded(place)


def test_a_pack_may_stand_in_the_sweep_itself(place: Path) -> None:
    assert loaded(place, pack=tiny_values(Path("photos"), Path("here"))) == loaded(place)


def test_what_is_set_is_in_the_pack_and_the_command_line_has_the_last_word(place: Path) -> None:
    changes = {"set": {"training.epochs": 4, "recipe.tau": 0.3, "loss": {"name": "proxy_anchor"}}}
    pack = loaded(place, **changes).pack
    assert (pack.training.epochs, pack.training.evaluate_every) == (4, 1)
    assert (pack.plain()["recipe"]["tau"], pack.plain()["recipe"]["momentum"], pack.loss.name) == (
        0.3,
        0.9,
        "proxy_anchor",
    )
    assert loaded(place, "pack.training.epochs=6", **changes).pack.training.epochs == 6


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("trials=12", lambda one: one.trials == 12),
        ("scheduler.name=asha", lambda one: one.scheduler.name == "asha"),
        ("searcher={name: grid, points: 3}", lambda one: one.searcher.points == 3),
        ("pack.data.root=/x=y", lambda one: one.pack.plain()["data"]["root"] == "/x=y"),
        ("pack.seeds.0=9", lambda one: one.pack.seeds == (9, 3)),
        ("space.recipe.momentum.low=0.5", lambda one: one.space["recipe.momentum"].low == 0.5),
        ("space.loss.tau.when={}", lambda one: one.space["loss.tau"].when == {}),
        ("set.training.epochs=3", lambda one: one.pack.training.epochs == 3),
    ],
)
def test_an_override_finds_its_place(place: Path, override: str, read: Any) -> None:
    assert read(loaded(place, override, space=ONLY_HIST))


@pytest.mark.parametrize(
    ("path", "entry", "expected"),
    [
        ("optimizer.lr", "{distribution: log_uniform, low: 1e-4, high: 1}", LogUniform(low=1e-4, high=1)),
        ("loss.tau", "{distribution: integer, low: 8, high: 9}", Integer(low=8, high=9)),
        ("loss.alpha", "{distribution: integer, low: 8, high: 9}", Integer(low=8, high=9)),
    ],
)
def test_an_override_may_be_a_whole_entry(place: Path, path: str, entry: str, expected: Distribution) -> None:
    assert loaded(place, f"space.{path}={entry}", space=ONLY_HIST).space[path] == expected


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("trials", "override 'trials': must be path=value"),
        ("pack.training.epochs", "must be path=value"),
        ("space.=3", "override 'space.=3': must be path=value"),
        ("space.recipe.momentum", "must be path=value"),
        ("seeds.9=1", "seeds: expected a list, got {'9': 1}"),
        ("pack.name.x=1", "override 'name.x=1': there is no 'x'"),
        ("space.loss.tau.low=[", "not readable as YAML"),
        ("pack=nothing.yaml", "nothing.yaml: no readable config file"),
        ("space=3", "space: "),
        ("set=3", "set: "),
        ("set={1: 2}", "set[1]: expected text"),
        ("set.training.epoch=3", "pack.training.epoch: unknown key. Did you mean 'epochs'?"),
        ("set.name.x=3", "set.name.x: there is no 'x' to set below str"),
        ("tirals=3", "tirals: unknown key. Did you mean 'trials'?"),
        ("space.recipe.momentun.low=.5", "space.recipe.momentun.low: "),
    ],
)
def test_an_override_that_cannot_be(place: Path, override: str, words: str) -> None:
    assert words in refusal(place, override)


def test_spellings_of_a_number_give_one_sweep(place: Path) -> None:
    def searched(low: str, choice: str) -> SweepConfig:
        return loaded(
            place,
            f"space.optimizer.lr={{distribution: uniform, low: {low}, high: 1}}",
            f"space.optimizer.weight_decay={{distribution: choice, values: [{choice}, 0]}}",
        )

    first = searched("1e-4", "1e-4")
    for spelt in ("0.0001", "1.0e-4", "1E-4"):
        assert searched(spelt, spelt).digest() == first.digest()
    assert first.plain()["space"]["optimizer.lr"]["low"] == 0.0001
    assert first.plain()["space"]["optimizer.weight_decay"]["values"] == [0.0001, 0]


@pytest.mark.parametrize("text", ["", "- a", "name: [", "name: a\nname: b"])
def test_a_file_that_is_no_sweep(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        load_sweep(path)


def test_a_pack_given_for_a_sweep_is_told_what_it_lacks(place: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_sweep(place.parent / "packs/tiny.yaml")
    assert "pack: must be given" in str(caught.value)
    assert "space: must be given" in str(caught.value)


def test_values_are_set_in_a_copy() -> None:
    before = {"a": {"b": [1, 2]}}
    value = {"x": [1]}
    after = with_values(before, {"a.b.1": 3, "c.d": value, "c.d.x": 2}, place="here")
    assert after == {"a": {"b": [1, 3]}, "c": {"d": {"x": 2}}}
    assert (before, value) == ({"a": {"b": [1, 2]}}, {"x": [1]})
    with pytest.raises(ConfigError, match=r"here\.a\.b\.7: there is no '7'"):
        with_values(before, {"a.b.7": 1}, place="here")
