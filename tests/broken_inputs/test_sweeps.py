"""Sweeps that are wrong, or meant to do harm: one error, exit code 2, nothing written."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.broken_inputs.conftest import Refused, Values
from tests.broken_inputs.test_configs import TEXTS, set_at
from tests.tiny import tiny_values

WEIGHT = {"distribution": "log_uniform", "low": 0.1, "high": 10}
DIM = {"distribution": "choice", "values": [8, 16]}


def write_sweep(images: Path, place: Path, **changes: Any) -> None:
    (place / "pack.yaml").write_text(yaml.safe_dump(tiny_values(images, place)))
    values: Values = {"name": "search", "pack": "pack.yaml", "space": {"recipe.weight": WEIGHT}, "trials": 2}
    (place / "sweep.yaml").write_text(yaml.safe_dump(values | changes, sort_keys=False))


@pytest.mark.parametrize(("text", "words"), [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_a_file_that_is_no_sweep(text: str, words: tuple[str, ...], tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "tiny.yaml").write_text(text)
    refused("sweep", "run", "tiny.yaml", words=words)


PROBLEMS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("misspelt", {"space": {"recipe.wieght": WEIGHT}}, ("space.recipe.wieght: unknown key. Did you mean 'weight'",)),
    ("empty_choice", {"space": {"model.dim": DIM | {"values": []}}}, ("space.model.dim.values: must name at least",)),
    ("through_zero", {"space": {"recipe.weight": WEIGHT | {"low": -1}}}, ("space.recipe.weight.low: must be above 0",)),
    ("to_zero", {"space": {"recipe.weight": WEIGHT | {"low": 0}}}, ("space.recipe.weight.low: must be above 0",)),
    ("infinite", {"space": {"recipe.weight": WEIGHT | {"high": float("inf")}}}, ("space.recipe.weight.high: ",)),
    ("not_a_number", {"space": {"recipe.weight": WEIGHT | {"low": float("nan")}}}, ("space.recipe.weight.low: ",)),
    ("nan_choice", {"space": {"recipe.tau": DIM | {"values": [float("nan")]}}}, ("space.recipe.tau.values: ",)),
    ("huge", {"space": {"model.dim": DIM | {"values": [10**9]}}}, ("space.model.dim.values[0]: ",)),
    ("absurd", {"space": {"model.dim": DIM | {"values": [10**400]}}}, ("space.model.dim.values[0]: ",)),
    (
        "outside",
        {"space": {"data.root": DIM | {"values": ["/etc", "../.."]}}},
        ("space.data.root: may not be searched",),
    ),
    ("output", {"space": {"output": DIM | {"values": ["/etc", "x"]}}}, ("space.output: may not be searched",)),
    ("dunder", {"space": {"__class__.x": DIM}}, ("space.__class__.x: ", "unknown key")),
    ("dots", {"space": {"..": DIM}}, ("space...: ", "unknown key")),
    ("no_path", {"space": {"": DIM}}, ("space.: ", "unknown key")),
    ("a_list", {"space": [WEIGHT]}, ("space: ",)),
    ("no_space", {"space": None}, ("space: ",)),
    ("scalar", {"space": {"recipe.weight": 3}}, ("space.recipe.weight: ",)),
    ("name", {"name": "../../home"}, ("name: must be 1 to 80",)),
    ("no_pack", {"pack": "nothing.yaml"}, ("nothing.yaml: no readable config file",)),
    ("folder", {"pack": "."}, ("no readable config file",)),
    ("itself", {"pack": "sweep.yaml"}, ("pack.space: unknown key",)),
    ("set_secret", {"set": {"output": "s3://KEY:geheim@bucket/x"}}, ("pack.output: ", "credentials")),
    ("in_a_store", {"set": {"output": "s3://bucket/x"}}, ("pack.output: a sweep needs a folder",)),
    ("negative_trials", {"trials": -1}, ("trials: ",)),
    ("half_a_trial", {"trials": 1.5}, ("trials: expected int, got 1.5",)),
    ("seeds", {"seeds": [1, 1]}, ("seeds: must not repeat a seed",)),
    ("unknown", {"tirals": 3}, ("tirals: unknown key. Did you mean 'trials'?",)),
]


@pytest.mark.parametrize(("changes", "words"), [case[1:] for case in PROBLEMS], ids=[case[0] for case in PROBLEMS])
def test_a_sweep_that_cannot_be(
    changes: dict[str, Any], words: tuple[str, ...], images: Path, tmp_path: Path, refused: Refused
) -> None:
    write_sweep(images, tmp_path, **changes)
    ended = refused("sweep", "run", "sweep.yaml", words=words)
    assert "geheim" not in ended.err


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("trials", ("override 'trials': must be path=value",)),
        ("space.recipe.weight.low=0", ("space.recipe.weight.low: must be above 0",)),
        ("pack.recipe.wieght=2", ("pack.recipe.wieght: unknown key. Did you mean 'weight'?",)),
        ("scheduler={name: asha, grace_epochs: 9}", ("scheduler.grace_epochs: must not be above",)),
        ("set.__class__.x=1", ("pack.__class__: unknown key",)),
        ("space.recipe.tau=!!python/object/apply:os.getcwd []", ("not readable as YAML",)),
        ("selection.split=tset", ("selection.split: 'tset' is not one of", "Did you mean 'test'?")),
    ],
)
def test_an_override_that_cannot_be(
    override: str, words: tuple[str, ...], images: Path, tmp_path: Path, refused: Refused
) -> None:
    write_sweep(images, tmp_path)
    refused("sweep", "run", "sweep.yaml", override, words=words)


def test_a_pack_that_is_wrong_is_told_at_its_place(images: Path, tmp_path: Path, refused: Refused) -> None:
    write_sweep(images, tmp_path)
    pack = tiny_values(images, tmp_path)
    set_at(pack, "loss.tua", 3)
    (tmp_path / "pack.yaml").write_text(yaml.safe_dump(pack))
    refused("sweep", "run", "sweep.yaml", words=("sweep.yaml: 1 problem(s)", "pack.loss.tua: unknown key"))
