"""What a sweep's config says about its trials, its folder and its digest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sfora_ray.config.load_sweep import build_sweep
from sfora_ray.config.overrides import apply_overrides
from sfora_ray.config.problems import models_in
from sfora_ray.config.reference import config_reference
from sfora_ray.config.schedulers import SCHEDULERS
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.search import DISTRIBUTIONS, SEARCHERS
from tests.tiny import tiny_values


def sweep_values(**changes: Any) -> dict[str, Any]:
    return {
        "name": "tiny-search",
        "pack": tiny_values(Path("photos"), Path("here")),
        "space": {
            "loss": {
                "distribution": "choice",
                "values": [{"name": "hist", "hidden": 7}, {"name": "proxy_anchor", "delta": 0.2}],
            },
            "loss.tau": {"distribution": "log_uniform", "low": 8, "high": 64, "when": {"loss.name": ["hist"]}},
            "recipe.momentum": {"distribution": "one_minus_log_uniform", "low": 0.9, "high": 0.999},
        },
        "trials": 5,
        **changes,
    }


def sweep(**changes: Any) -> SweepConfig:
    return build_sweep(sweep_values(**changes), place="sweep.yaml")


def of_pack(*overrides: str) -> dict[str, Any]:
    return {"pack": apply_overrides(tiny_values(Path("photos"), Path("here")), overrides)}


VALUES = {"recipe.momentum": 0.95, "loss.tau": 16, "loss": {"name": "hist", "hidden": 9}}


def test_values_are_set_a_part_before_what_lies_within_it() -> None:
    pack = sweep().candidate(VALUES)
    loss, recipe = pack.plain()["loss"], pack.plain()["recipe"]
    assert (loss["name"], loss["hidden"], loss["tau"], recipe["momentum"]) == ("hist", 9, 16, 0.95)


def test_a_candidate_is_the_pack_but_for_the_values() -> None:
    one = sweep()
    assert one.candidate({}) == one.pack
    pack = one.candidate({"recipe.momentum": 0.95})
    assert pack.seeds == (5, 3)
    assert pack.selection == one.pack.selection
    assert pack == one.pack.model_copy(update={"recipe": pack.recipe})


def test_a_trial_is_judged_as_the_sweep_says() -> None:
    one = sweep(selection={"fraction": 0.3, "seed": 4, "metric": "map_at_r"})
    trial = one.trial_config(VALUES, seed=7, fold=0)
    assert trial.selection.model_dump() == {
        "split": "validation",
        "metric": "map_at_r",
        "validation_fraction": 0.3,
        "validation_seed": 4,
        "validation_folds": None,
        "validation_fold": 0,
    }
    assert (trial.seeds, trial.folds, trial.min_members) == ((7,), (), 1)
    assert (trial.loss, trial.recipe) == (one.candidate(VALUES).loss, one.candidate(VALUES).recipe)


def test_members_of_a_trial_are_seeds_times_folds() -> None:
    one = sweep(seeds=[4, 2], selection={"folds": 2})
    assert one.member_names() == (
        ("seed4-fold0", 4, 0),
        ("seed4-fold1", 4, 1),
        ("seed2-fold0", 2, 0),
        ("seed2-fold1", 2, 1),
    )
    held_out = [one.trial_config({}, seed, fold).selection for _, seed, fold in one.member_names()]
    assert [(one.validation_folds, one.validation_fold) for one in held_out] == [(2, 0), (2, 1)] * 2


def test_choosing_on_test_classes_is_stamped() -> None:
    one = sweep(selection={"split": "test"})
    assert one.is_on_test
    assert one.trial_config({}, 0, 0).selection.split == "test"
    assert not sweep().is_on_test


def test_min_members_of_the_pack_do_not_stop_a_trial_of_one() -> None:
    one = sweep(**of_pack("min_members=2"))
    assert one.trial_config({}, 0, 0).min_members == 1
    assert one.candidate({}).min_members == 2


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({"trials": 7}, 7),
        ({"trials": None, "searcher": {"name": "grid", "points": 3}}, 3 * 3 + 3),
        ({"trials": 4, "searcher": {"name": "grid", "points": 3}}, 4),
    ],
)
def test_how_many_trials_there_are(changes: dict[str, Any], size: int) -> None:
    assert sweep(**changes).num_trials == size


def test_the_folder_lies_beside_run_folders() -> None:
    one = sweep()
    assert one.folder == Path("here/runs") / one.run_name
    assert one.run_name == f"tiny-search-{one.digest()}"


@pytest.mark.parametrize(
    "changes",
    [
        {"trials": 50},
        {"max_concurrent_trials": 1},
        {"max_failures": 9},
        {"set": {"output": "here/runs"}},
        of_pack("output=elsewhere"),
        of_pack("tracking={name: mlflow}"),
        of_pack("cache_dir=other"),
        of_pack("resources.max_failures=7"),
        {"searcher": {"name": "random"}},
        {"scheduler": {"name": "none"}},
        {"seeds": [0]},
    ],
)
def test_the_digest_ignores_what_changes_no_trial(changes: dict[str, Any]) -> None:
    assert sweep(**changes).digest() == sweep().digest()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"seeds": [0, 1]},
        {"searcher": {"name": "random", "seed": 1}},
        {"searcher": {"name": "optuna"}},
        {"scheduler": {"name": "asha"}},
        {"selection": {"folds": 2}},
        {"selection": {"epoch": "last"}},
        of_pack("training.epochs=3"),
        of_pack("optimizer.lr=1e-4"),
        {
            "space": dict(reversed(sweep_values()["space"].items()))
            | {"loss.tau": {"distribution": "choice", "values": [8]}}
        },
    ],
)
def test_the_digest_changes_with_what_is_computed(changes: dict[str, Any]) -> None:
    values = sweep_values(**changes)
    assert SweepConfig.model_validate(values).digest() != sweep().digest()


def test_the_order_of_the_space_is_part_of_it() -> None:
    space = sweep_values()["space"]
    turned = {path: space[path] for path in ("recipe.momentum", "loss", "loss.tau")}
    assert sweep(space=turned).digest() != sweep().digest()


def test_it_survives_json() -> None:
    one = sweep(seeds=[1, 2], scheduler={"name": "asha"}, searcher={"name": "optuna"}, set={"training.epochs": 2})
    again = SweepConfig.model_validate(json.loads(json.dumps(one.plain(), allow_nan=False)))
    assert again == one
    assert again.digest() == one.digest()
    assert list(again.space) == list(one.space)
    assert [type(entry) for entry in again.space.values()] == [type(entry) for entry in one.space.values()]


def test_every_part_of_every_table_can_be_configured() -> None:
    fields = SweepConfig.model_fields
    for key, table in (("space", DISTRIBUTIONS), ("searcher", SEARCHERS), ("scheduler", SCHEDULERS)):
        assert set(models_in(fields[key].annotation)) == set(table.values())


def test_the_reference_has_the_sweep_and_leaves_the_pack_to_its_own() -> None:
    text = config_reference(SweepConfig)
    titles = [line.strip("# `") for line in text.splitlines() if line.startswith("####")]
    expected = [f"space: {name}" for name in DISTRIBUTIONS] + [f"searcher: {name}" for name in SEARCHERS]
    expected += [f"scheduler: {name}" for name in SCHEDULERS] + ["selection"]
    assert titles == ["top level", *expected]
    for key in SweepConfig.model_fields:
        assert f"| `{key}` |" in text


def test_the_schema_takes_a_path_for_the_pack_and_refuses_what_the_types_refuse() -> None:
    schema = SweepConfig.model_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)

    def faults(**changes: Any) -> list[Any]:
        return list(jsonschema.Draft202012Validator(schema).iter_errors(sweep_values(**changes)))

    assert faults() == faults(pack="../tiny.yaml") == []
    assert faults(pack=5)
    assert faults(los=1)
    assert faults(space={"loss.tau": {"distribution": "log_unform", "low": 1, "high": 2}})
    assert faults(scheduler={"name": "asha", "grace": 1})
