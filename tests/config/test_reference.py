"""Where the reference has the table of a part, and how the rows that hold the part lead there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from sfora_ray.config.pack import PackConfig
from sfora_ray.config.problems import models_in
from sfora_ray.config.reference import config_reference
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.folds import FOLDS
from sfora_ray.losses import LOSSES
from sfora_ray.mining import MINERS
from sfora_ray.recipes import INNER_RECIPES, RECIPES


def tables(root: type[BaseModel] = PackConfig) -> dict[str, str]:
    """Return the text of each table under its title, in their order."""
    parts = config_reference(root).split("#### ")[1:]
    found = {part.split("`")[1]: part for part in parts}
    assert len(found) == len(parts)
    return found


def cells(title: str, key: str, root: type[BaseModel] = PackConfig) -> tuple[str, str]:
    """Return type and default of a row."""
    row = next(line for line in tables(root)[title].splitlines() if line.startswith(f"| `{key}` |"))
    _, _, kind, default, *_ = re.split(r"(?<!\\)\|", row)
    return kind.strip().replace("\\|", "|"), default.strip()


def depths(model: type[BaseModel], depth: int = 0) -> Iterator[tuple[type[BaseModel], int]]:
    """Yield each part below a model with the number of dots of each place that it may stand at."""
    for field in model.model_fields.values():
        for child in models_in(field.annotation):
            yield child, depth
            yield from depths(child, depth + 1)


@pytest.mark.parametrize(("key", "table"), [("loss", LOSSES), ("miner", MINERS), ("recipe", RECIPES), ("folds", FOLDS)])
def test_all_parts_of_a_key_stand_under_it_side_by_side(key: str, table: dict[str, type]) -> None:
    titles = list(tables())
    own = [title for title in titles if title.startswith(f"{key}: ")]
    assert sorted(own) == sorted(f"{key}: {name}" for name in table)
    first = titles.index(own[0])
    assert titles[first : first + len(own)] == own


def test_no_table_stands_deeper_than_it_need() -> None:
    shallowest: dict[type[BaseModel], int] = {}
    for model, depth in depths(PackConfig):
        shallowest[model] = min(depth, shallowest.get(model, depth))
    dots = sorted(title.count(".") for title in tables() if title != "top level")
    assert dots == sorted(shallowest.values())


@pytest.mark.parametrize(
    ("title", "key", "kind", "default"),
    [
        ("recipe: distillation", "base", f"`{' | '.join(INNER_RECIPES)}`, see `recipe`", "`plain`"),
        ("top level", "recipe", f"`{' | '.join(RECIPES)}`", "required"),
        ("top level", "miner", f"`{' | '.join(MINERS)} | null`", "null"),
        ("top level", "tracking", "`mlflow | none`", "`mlflow`"),
        ("data: image_folder", "split", "`seeded | interleaved | halves | csv`", "`interleaved`"),
        ("data: image_folder", "coarse", "see `data: image_folder.coarse`", "null"),
        ("model", "backbone", "`conv4 | resnet18 | resnet34 | resnet50 | timm`", "`resnet50`"),
        ("model", "projector", "see `model.projector`", "null"),
        ("loss: hist_proxy_anchor", "hist", "see `loss: hist`", "its defaults"),
        ("top level", "optimizer", "see `optimizer`", "its defaults"),
    ],
)
def test_a_row_names_the_choices_or_the_table(title: str, key: str, kind: str, default: str) -> None:
    assert cells(title, key) == (kind, default)


def test_lists_and_mappings_of_parts_are_told_as_such() -> None:
    kind, default = cells("folds: composed", "chain")
    assert (kind.startswith("`list of concat | mean | "), kind.endswith("`, see `folds`")) == (True, True)
    assert default == "required"
    assert cells("top level", "space", SweepConfig)[0].startswith("`mapping to uniform | log_uniform | ")
    assert cells("top level", "pack", SweepConfig) == ("see `sfora-ray config reference`", "required")


def test_a_row_leads_to_a_table_that_is_there() -> None:
    found = tables()
    told = re.findall(r"^\| `\w+` \| [^|]*?(?:\\\|[^|]*?)*see `([^`]+)` \|", config_reference(), re.MULTILINE)
    assert {"recipe", "miner", "folds", "loss: hist", "model.projector"} <= set(told)
    keys = {title.rpartition(": ")[0] for title in found}
    assert [place for place in told if place not in keys | set(found)] == []
