"""Every configuration that ships: it loads, says where it comes from, and plans what it claims."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sfora_ray.config.load import load_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.yaml_text import dump_yaml, parse_yaml
from sfora_ray.losses import HistOptions
from sfora_ray.training.preflight import MemberPlan, dry_plan

CONFIGS = Path(__file__).parents[2] / "configs"
PACKS = (path for path in CONFIGS.rglob("*.yaml") if path.parent.name != "search")
SHIPPED = sorted(path.relative_to(CONFIGS).as_posix() for path in PACKS)
BIRDS = [name for name in SHIPPED if name.startswith("cub/") and name != "cub/hist.yaml"]
HERD_RATES = {"cub/herd.yaml": 0.03, "cub/herd_document.yaml": 0.1, "cub/hist_document.yaml": 0.03}


def test_there_are_configs() -> None:
    assert len(SHIPPED) >= 14
    assert len(BIRDS) == 5


@pytest.mark.parametrize("name", SHIPPED)
def test_it_loads_and_its_name_tells_its_place(name: str) -> None:
    config = load_config(CONFIGS / name)
    place = name.removesuffix(".yaml").replace("/", "-").replace("_", "-")
    assert config.name.replace("_", "-") == place
    assert len(config.seeds) >= 2


@pytest.mark.parametrize("name", SHIPPED)
def test_its_header_has_a_source_and_the_command(name: str) -> None:
    lines = (CONFIGS / name).read_text().splitlines()
    header = list(itertools.takewhile(lambda line: line.startswith("#"), lines))
    assert len(header) >= 3
    assert f"sfora-ray pack run configs/{name}" in "\n".join(header)


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
    values = parse_yaml((CONFIGS / BIRDS[0]).read_text(), place="birds")
    for wrong in ({"los": 1}, {"seeds": ["a"]}, {"schedule": {"name": "cosin"}}, {"sampler": {"name": "no"}}):
        assert list(jsonschema.Draft202012Validator(schema).iter_errors(values | wrong))


@pytest.fixture(scope="module", params=BIRDS)
def bird(request: pytest.FixtureRequest) -> tuple[str, PackConfig, MemberPlan]:
    config = load_config(CONFIGS / request.param)
    return str(request.param), config, dry_plan(config)


def test_birds_take_49_steps_an_epoch(bird: tuple[str, PackConfig, MemberPlan]) -> None:
    _, config, plan = bird
    assert (config.sampler.batch_size, plan.steps_per_epoch, config.training.epochs) == (120, 49, 60)
    assert (plan.counts.train_classes, plan.counts.train_images) == (100, 5864)
    assert (plan.counts.test_classes, plan.counts.test_images) == (100, 5924)
    assert plan.weights == "not read"


def test_birds_halve_their_rates_every_ten_epochs(bird: tuple[str, PackConfig, MemberPlan]) -> None:
    assert bird[2].rates == tuple((1 + 10 * k, 0.5**k) for k in range(6))


def test_birds_learn_at_the_published_rates(bird: tuple[str, PackConfig, MemberPlan]) -> None:
    name, _, plan = bird
    expected = {
        "backbone.decay": (1e-4, 1e-4, False),
        "backbone.no_decay": (1e-4, 0.0, False),
        "head.decay": (1e-4, 1e-4, True),
        "head.no_decay": (1e-4, 0.0, True),
    }
    if name in HERD_RATES:
        expected |= {
            "hist.distributions": (HERD_RATES[name], 1e-4, True),
            "hist.network.decay": (1e-3, 1e-4, True),
            "hist.network.no_decay": (1e-3, 0.0, True),
        }
    else:
        expected |= {"proxy_anchor.proxies": (1e-2, 0.0, True)}
    groups = {group.name: (group.lr, group.weight_decay, group.warms_up) for group in plan.groups}
    assert set(groups) == set(expected)
    for key, (rate, decay, warms_up) in expected.items():
        assert groups[key][:2] == pytest.approx((rate, decay))
        assert groups[key][2] is warms_up


def test_birds_have_the_parameters_of_their_parts(bird: tuple[str, PackConfig, MemberPlan]) -> None:
    name, _, plan = bird
    sizes = {group.name: group.num_parameters for group in plan.groups}
    # ResNet-50 without its classifier: 25,557,032 - 2,049,000; 53 BatchNorms hold 26,560 pairs.
    assert sizes["backbone.decay"] + sizes["backbone.no_decay"] == 23_508_032
    assert sizes["backbone.no_decay"] == 53_120
    assert (sizes["head.decay"], sizes["head.no_decay"]) == (2048 * 512, 512)
    own = sizes["hist.distributions"] if name in HERD_RATES else sizes["proxy_anchor.proxies"]
    assert own == 100 * 512 * (2 if name in HERD_RATES else 1)


def test_hist_on_birds_is_its_authors_recipe() -> None:
    """Settings of the HIST program for CUB: Adam, 1.2e-4, network x5, decay 5e-5, halved every 5, batch 32 random."""
    config = load_config(CONFIGS / "cub/hist.yaml")
    plan = dry_plan(config)
    assert isinstance(config.loss, HistOptions)
    assert (config.loss.tau, config.loss.alpha, config.loss.hgnn_input) == (32, 1.1, "raw")
    assert (config.optimizer.name, config.sampler.name, config.sampler.batch_size) == ("adam", "random", 32)
    assert plan.steps_per_epoch == 5864 // 32
    groups = {group.name: (group.lr, group.weight_decay) for group in plan.groups}
    assert groups["backbone.decay"] == pytest.approx((1.2e-4, 5e-5))
    assert groups["hist.distributions"] == pytest.approx((0.1, 5e-5))
    assert groups["hist.network.decay"] == pytest.approx((6e-4, 5e-5))
    # Forty epochs after one of warm-up that the schedule does not count.
    assert config.training.epochs == 41
    assert plan.rates == tuple((1 if k == 0 else 2 + 5 * k, 0.5**k) for k in range(8))
