"""The records: digests, JSON both ways, and the reference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from sfora_ray.config.load import load_config
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.problems import models_in
from sfora_ray.config.reference import config_reference
from sfora_ray.data import DATASETS
from sfora_ray.losses import LOSSES
from sfora_ray.mining import MINERS
from sfora_ray.models import BACKBONES
from sfora_ray.recipes import RECIPES
from sfora_ray.samplers import SAMPLERS
from sfora_ray.tracking import TRACKERS
from tests.tiny import tiny_config, tiny_spec

CONFIGS = Path(__file__).parents[2] / "configs"


def config(*overrides: str) -> PackConfig:
    return tiny_config(Path("photos"), Path("here"), *overrides)


@pytest.mark.parametrize(
    "override",
    [
        "output=elsewhere",
        "cache_dir=/tmp/other",
        "tracking={name: mlflow, uri: 'sqlite:///other.db'}",
        "resources.max_concurrent_members=1",
        "resources.max_failures=0",
        "resources.schedule_timeout_seconds=5",
        "loss.tau=32.0",
        "folds=[{name: mean}, {name: gpa}, {name: wccn}]",
    ],
)
def test_the_digest_ignores_what_changes_no_number(override: str) -> None:
    assert config(override).digest() == config().digest()


@pytest.mark.parametrize(
    "override",
    [
        "name=other",
        "seeds=[3, 5]",
        "loss.tau=16",
        "folds=[mean]",
        "data.channels=1",
        "resources.cpus_per_worker=2",
        "training.epochs=3",
        "evaluation.singletons=miss",
        "model.backbone.widths=[4, 4, 8, 9]",
    ],
)
def test_the_digest_changes_with_what_is_computed(override: str) -> None:
    assert config(override).digest() != config().digest()


@pytest.mark.parametrize(
    ("shipped", "before"),
    [
        ("cub/herd", "7e30a9a934"),
        ("glyphs/demo", "ec7e8b95d8"),
        ("grocery/hist", "59ea56a742"),
        ("omniglot/hist", "4cda4146d0"),
    ],
)
def test_keys_that_came_later_leave_older_run_folders_their_names(shipped: str, before: str) -> None:
    """The digests are those of the version before miners, k-max pooling, inner recipes and coarse classes."""
    assert load_config(CONFIGS / f"{shipped}.yaml").digest() == before


def test_the_run_folder_is_a_slug_and_the_digest() -> None:
    assert re.fullmatch(r"tiny-[0-9a-f]{10}", config().run_name)


def test_config_and_spec_survive_json() -> None:
    pack = config("folds=['uncentred:4', gpa+wccn, {name: random, dim: 3}]", "loss={name: proxy_anchor}")
    spec = tiny_spec(pack)
    text = json.dumps(spec.model_dump(mode="json"), allow_nan=False)
    again = MemberSpec.model_validate(json.loads(text))
    assert again == spec
    assert type(again.config.loss) is type(pack.loss)
    assert [type(fold) for fold in again.config.folds] == [type(fold) for fold in pack.folds]
    assert again.config.digest() == pack.digest()


def test_result_survives_json() -> None:
    result = MemberResult(id="m00", seed=1, status="finished", metrics={"recall_at_1": 1 / 3}, warnings=("a",))
    assert MemberResult.model_validate(json.loads(json.dumps(result.model_dump(mode="json")))) == result


def test_records_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        config().name = "other"  # type: ignore[misc]


def test_the_member_folder_is_named_by_place_and_seed() -> None:
    assert tiny_spec(config(), seed=42).folder_name == "m00-seed42"


def models_below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        for child in models_in(field.annotation):
            yield from models_below(child)


def test_the_reference_has_a_table_for_every_part_and_a_row_for_every_key() -> None:
    tables = config_reference().split("#### ")[1:]
    for model in dict.fromkeys(models_below(PackConfig)):
        keys = set(model.model_fields)
        found = [table for table in tables if keys == set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))]
        assert found, model.__name__


def test_every_component_of_every_table_can_be_configured() -> None:
    below = set(models_below(PackConfig))
    for table in (DATASETS, SAMPLERS, LOSSES, MINERS, RECIPES, TRACKERS, BACKBONES):
        assert set(table.values()) <= below


@pytest.mark.parametrize(
    ("key", "meaning"),
    [
        ("seeds", "One member per seed."),
        ("precision", "losses, parameters and optimiser stay in fp32"),
        ("singletons", "or counts as a miss"),
        ("max_failures", "after its worker or node was lost"),
    ],
)
def test_the_reference_says_what_a_key_means(key: str, meaning: str) -> None:
    row = re.search(rf"^\| `{key}` \|.*$", config_reference(), re.MULTILINE)
    assert row is not None
    assert meaning in row[0]


def test_every_row_of_the_reference_has_four_cells() -> None:
    rows = [line for line in config_reference().splitlines() if line.startswith("|")]
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {6}
