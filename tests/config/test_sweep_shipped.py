"""Every sweep that ships: it loads, says what it costs, and every configuration of it makes a pack."""

from __future__ import annotations

import itertools
from pathlib import Path

import jsonschema
import pytest

from sfora_ray.config.load import load_config
from sfora_ray.config.load_sweep import load_sweep
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.config.yaml_text import parse_yaml

SEARCHES = sorted((Path(__file__).parents[2] / "configs/search").glob("*.yaml"))
NAMES = [path.name for path in SEARCHES]


def test_there_are_sweeps() -> None:
    assert {"herd.yaml", "omniglot_herd.yaml", "glyphs_demo.yaml"} <= set(NAMES)


@pytest.mark.parametrize("path", SEARCHES, ids=NAMES)
def test_it_loads_and_its_name_tells_its_place(path: Path) -> None:
    assert load_sweep(path).name == f"search-{path.stem.replace('_', '-')}"


@pytest.mark.parametrize("path", SEARCHES, ids=NAMES)
def test_its_header_has_the_base_the_command_and_the_cost(path: Path) -> None:
    header = "\n".join(itertools.takewhile(lambda line: line.startswith("#"), path.read_text().splitlines()))
    base = parse_yaml(path.read_text(), place=path.name)["pack"].removeprefix("../")
    assert f"sfora-ray sweep run configs/search/{path.name}" in header
    assert f"Base: configs/{base}" in header
    assert "Cost: " in header


@pytest.mark.parametrize("path", SEARCHES, ids=NAMES)
def test_the_schema_for_editors_accepts_it(path: Path) -> None:
    values = parse_yaml(path.read_text(), place=path.name)
    assert list(jsonschema.Draft202012Validator(SweepConfig.model_json_schema()).iter_errors(values)) == []


@pytest.mark.parametrize("path", SEARCHES, ids=NAMES)
def test_every_proposal_makes_a_pack_and_none_looks_at_test_classes(path: Path) -> None:
    sweep = load_sweep(path)
    assert not sweep.is_on_test
    searcher = sweep.searcher.build(sweep.search_space)
    for number in range(sweep.num_trials or 0):
        values = searcher.propose(number, ())
        assert values is not None
        for _, seed, fold in sweep.member_names():
            assert sweep.trial_config(values, seed, fold).selection.split == "validation"


@pytest.mark.parametrize(
    ("name", "pack"), [("omniglot_herd.yaml", "omniglot/herd.yaml"), ("herd.yaml", "cub/herd.yaml")]
)
def test_the_shipped_setting_lies_in_the_space(name: str, pack: str) -> None:
    sweep = load_sweep(SEARCHES[0].parent / name)
    recipe = load_config(SEARCHES[0].parents[1] / pack).plain()["recipe"]
    for path, one in sweep.space.items():
        (_, low), (_, high) = one.probes()
        assert low < recipe[path.removeprefix("recipe.")] < high
