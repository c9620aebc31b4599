"""Every configuration that ships: it loads, says where it comes from, and plans what it claims."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from sfora_ray.config.load import load_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.yaml_text import dump_yaml, parse_yaml
from sfora_ray.losses import LOSSES
from sfora_ray.options import Options
from sfora_ray.recipes import RECIPES
from sfora_ray.samplers import SAMPLERS
from sfora_ray.training.preflight import MemberPlan
from tests.config.shipped import CONFIGS, PUBLISHED, SHIPPED, config_of, opening, plan_of

METHODS = {
    "contextual_224",
    "contextual_256",
    "contrastive",
    "fast_ap",
    "herd",
    "hist",
    "hist_distill",
    "multi_similarity",
    "proxy_anchor",
    "proxy_anchor_distill",
    "proxy_nca_pp",
    "roadmap",
    "smooth_ap",
    "triplet",
}
COST = re.compile(r"Cost: (\d+) epochs of ([\d,]+) steps at batch (\d+) and (\d+) px; one GPU a member\.")


@pytest.mark.parametrize("folder", ["cub", "cars", "sop", "inaturalist"])
def test_each_benchmark_has_a_config_of_each_method(folder: str) -> None:
    assert {Path(name).stem for name in SHIPPED if name.startswith(f"{folder}/")} >= METHODS


@pytest.mark.parametrize(("part", "table"), [("loss", LOSSES), ("recipe", RECIPES), ("sampler", SAMPLERS)])
def test_every_objective_recipe_and_sampler_has_a_ready_config(part: str, table: dict[str, type[Options]]) -> None:
    assert {getattr(config_of(name), part).name for name in SHIPPED} == set(table)


@pytest.mark.parametrize("name", [name for name in SHIPPED if name.startswith("omniglot/")])
def test_the_characters_of_omniglot_fill_its_batches(name: str) -> None:
    config = config_of(name)
    sampler = config.sampler.build(np.repeat(np.arange(136), 20), seed=0)
    assert sampler.steps_per_epoch == (23 if config.sampler.name == "per_class" else 22)


def test_the_memory_of_omniglot_wakes_after_two_epochs() -> None:
    config = config_of("omniglot/xbm.yaml")
    sampler = config.sampler.build(np.repeat(np.arange(136), 20), seed=0)
    recipe = config.recipe.model_dump()
    assert (recipe["capacity"], recipe["warmup_steps"]) == (1024, 2 * sampler.steps_per_epoch)


@pytest.mark.parametrize("name", SHIPPED)
def test_it_loads_and_its_name_tells_its_place(name: str) -> None:
    config = load_config(CONFIGS / name)
    place = name.removesuffix(".yaml").replace("/", "-").replace("_", "-")
    assert config.name.replace("_", "-") == place
    assert len(config.seeds) >= 2


@pytest.mark.parametrize("name", SHIPPED)
def test_its_header_has_a_source_and_the_command(name: str) -> None:
    assert f"sfora-ray pack run configs/{name}" in opening(name)
    assert len((CONFIGS / name).read_text().split("\nname:")[0].splitlines()) >= 3


def test_no_two_files_compute_the_same() -> None:
    """But for the name, which is part of a digest."""
    configs = [config_of(name) for name in SHIPPED]
    digests = [config.model_copy(update={"name": "any"}).digest() for config in configs]
    twins = [name for name, digest in zip(SHIPPED, digests, strict=True) if digests.count(digest) > 1]
    assert twins == []


@pytest.mark.parametrize("name", SHIPPED)
def test_the_schema_for_editors_accepts_it(name: str, schema: dict[str, Any]) -> None:
    values = parse_yaml((CONFIGS / name).read_text(), place=name)
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(values)) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_with_every_default_filled_in_it_is_the_same_pack(name: str, tmp_path: Path) -> None:
    config = load_config(CONFIGS / name)
    whole = tmp_path / "whole.yaml"
    whole.write_text(dump_yaml(config.plain()))
    assert load_config(whole) == config
    assert load_config(whole).digest() == config.digest()


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return PackConfig.model_json_schema()


def test_the_schema_refuses_what_the_types_refuse(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    values = parse_yaml((CONFIGS / "cub/herd.yaml").read_text(), place="birds")
    for wrong in ({"los": 1}, {"seeds": ["a"]}, {"schedule": {"name": "cosin"}}, {"sampler": {"name": "no"}}):
        assert list(jsonschema.Draft202012Validator(schema).iter_errors(values | wrong))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_benchmark_tells_source_published_value_and_what_is_selected(name: str) -> None:
    text = opening(name)
    selected = {"test": "Epochs are selected on the test classes", "last": "only the last epoch is evaluated"}
    for part in ("Source: ", "Published: ", "Cost: ", selected[config_of(name).selection.split]):
        assert text.count(part) == 1, part


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_transfer_says_so_first_and_has_no_published_value(name: str) -> None:
    text = opening(name)
    transfer = text.startswith("A transfer, not a reproduction: ")
    assert transfer == ("transfer" in text)
    if transfer:
        assert "Published: none" in text


@pytest.mark.parametrize("name", PUBLISHED)
def test_its_plan_costs_what_it_says(name: str) -> None:
    config, plan = config_of(name), plan_of(name)
    found = COST.search(opening(name))
    assert found is not None
    told = tuple(int(number.replace(",", "")) for number in found.groups())
    size = config.input.image_size
    assert told == (config.training.epochs, plan.steps_per_epoch, config.sampler.batch_size, size)
    assert plan.weights == "not read"
    _check_groups(config, plan)


def _check_groups(config: PackConfig, plan: MemberPlan) -> None:
    rates = {group.name: (group.lr, group.weight_decay) for group in plan.groups}
    head = config.optimizer.head_lr or config.optimizer.lr
    assert rates["backbone.decay"] == (config.optimizer.lr, config.optimizer.weight_decay)
    assert rates["head.decay"] == (head, config.optimizer.weight_decay)
    assert rates["backbone.no_decay"] == (config.optimizer.lr, 0.0)
    # ResNet-50 without its classifier: 25,557,032 - 2,049,000; 53 BatchNorms hold 26,560 pairs.
    sizes = {group.name: group.num_parameters for group in plan.groups}
    assert sizes["backbone.decay"] + sizes["backbone.no_decay"] == 23_508_032
    assert sizes["backbone.no_decay"] == 53_120
    projector = 0 if config.model.projector is None else config.model.dim * config.model.projector.dim
    assert sizes["head.decay"] == 2048 * config.model.dim + projector
