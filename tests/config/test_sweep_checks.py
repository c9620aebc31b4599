"""Everything that is wrong with a sweep, in one error with its places, before anything starts."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from sfora_ray.config.load_sweep import build_sweep
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.space_checks import NOT_SEARCHED
from sfora_ray.config.sweep_checks import CHANGEABLE
from sfora_ray.errors import ConfigError
from tests.config.test_sweep import of_pack, sweep, sweep_values


def problems(**changes: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build_sweep(sweep_values(**changes), place="bad.yaml")
    first, *lines = str(caught.value).splitlines()
    assert first == f"bad.yaml: {len(lines)} problem(s)"
    return [line.removeprefix("  - ") for line in lines]


def choice(*values: Any, **more: Any) -> dict[str, Any]:
    return {"distribution": "choice", "values": list(values), **more}


def uniform(low: float, high: float, kind: str = "uniform", **more: Any) -> dict[str, Any]:
    return {"distribution": kind, "low": low, "high": high, **more}


SPACES: list[tuple[dict[str, Any], str, str]] = [
    ({"recipe.tua": uniform(0.1, 1)}, "space.recipe.tua: unknown key. Did you mean 'tau'?", "weight"),
    ({"recpie.tau": uniform(0.1, 1)}, "space.recpie.tau: recpie: unknown key. Did you mean 'recipe'?", ""),
    ({"name.x": choice(1)}, "space.name.x: may not be searched", ""),
    ({"sampler.batch_size.x": choice(1)}, "space.sampler.batch_size.x: there is no 'x' to set below int 12", ""),
    ({"model.dim": choice()}, "space.model.dim.values: must name at least one value", "(list)"),
    ({"recipe.weight": uniform(0, 1, "log_uniform")}, "space.recipe.weight.low: must be above 0", "got 0 (int)"),
    ({"recipe.weight": uniform(-1, 1, "log_uniform")}, "space.recipe.weight.low: must be above 0", "got -1 (int)"),
    ({"recipe.weight": uniform(2, 1)}, "space.recipe.weight.high: must be above low (2.0)", "got 1 (int)"),
    ({"recipe.momentum": uniform(0.9, 1, "one_minus_log_uniform")}, "space.recipe.momentum.high: must be ", "(int)"),
    ({"model.dim": uniform(7.5, 9, "integer")}, "space.model.dim.low: expected int, got 7.5", ""),
    ({"recipe.tau": uniform(-1, 1)}, "space.recipe.tau.low: input should be greater than 0", "got -1.0 (float)"),
    ({"recipe.tau": uniform(0, 1)}, "space.recipe.tau.low: input should be greater than 0", "got 0.0 (float)"),
    ({"recipe.momentum": uniform(0.5, 1.5)}, "space.recipe.momentum.high: input should be less", "got 1.5 (float)"),
    ({"model.dim": uniform(0, 9, "integer")}, "space.model.dim.low: input should be greater", "got 0 (int)"),
    ({"model.pooling": choice("avg", "avgmax")}, "space.model.pooling.values[1]: 'avgmax' is not one of", "'avg_max'?"),
    ({"loss": choice({"name": "hist", "tua": 3})}, "space.loss.values[0].tua: unknown key. Did you mean 'tau'?", ""),
    ({"loss": choice({"name": "hist"}, {"name": "hits"})}, "space.loss.values[1]: 'hits' is not known.", "smooth_ap"),
    ({"model.dim": choice(8, "wide")}, "space.model.dim.values[1]: expected int, got 'wide' (str)", ""),
    ({"model.dim": uniform(8.5, 9.5)}, "space.model.dim.low: expected int, got 8.5", ""),
    ({"model.dim": {"distribution": "unifrom"}}, "space.model.dim: 'unifrom' is not known. Did you mean 'unif", ""),
    ({"model.dim": {"low": 3, "high": 4}}, "space.model.dim: needs a 'distribution'. Choose one of: ", "choice"),
    ({"model.dim": uniform(3, 4, step=1)}, "space.model.dim.step: unknown key. Valid keys: ", "when"),
    ({"loss.tau": uniform(1, 2), "loss": choice({"name": "hist"})}, "space.loss: would overwrite loss.tau", "first"),
]


@pytest.mark.parametrize(("space", "start", "end"), SPACES)
def test_one_problem_of_a_space(space: dict[str, Any], start: str, end: str) -> None:
    lines = problems(space=space)
    assert [line for line in lines if line.startswith(start)], lines
    assert any(line.endswith(end) for line in lines if line.startswith(start)), lines
    assert len({line.split(": ")[0] for line in lines}) == 1 + (
        start.startswith("space.model.dim.low: expected int, got 8.5")
    )


def test_a_valid_space_and_every_choice_in_it() -> None:
    assert sweep().trials == 5


DIM = choice(8, 16)
CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"a": [1]}, "is no earlier entry of the space. Earlier: model.dim, loss"),
    ({"model.dm": [8]}, "is no earlier entry of the space. Did you mean 'model.dim'?"),
    ({"recipe.tau": [8]}, "must stand before recipe.weight in the space"),
    ({"recipe.weight": [8]}, "must stand before recipe.weight in the space"),
    ({"optimizer.lr": [8]}, "is continuous (uniform), so that no single value can be waited for"),
    ({"model.dim": [8, 32]}, "model.dim never is 32. It may be: 8, 16"),
    ({"loss.name": ["hits"]}, "loss.name never is 'hits'. Did you mean 'hist'? It may be: hist, proxy_anchor"),
    ({"loss.nam": ["hist"]}, "none of the choices has a key 'nam'"),
]


@pytest.mark.parametrize(("when", "words"), CONDITIONS)
def test_a_condition_that_can_never_hold(when: dict[str, Any], words: str) -> None:
    space = {
        "model.dim": DIM,
        "loss": choice({"name": "hist"}, {"name": "proxy_anchor"}),
        "optimizer.lr": uniform(0.1, 1),
        "recipe.weight": uniform(0, 1, when=when),
        "recipe.tau": choice(0.1),
    }
    (line,) = problems(space=space)
    assert line.startswith(f"space.recipe.weight.when.{next(iter(when))}: {words}")


def test_a_path_that_only_some_choices_have_needs_a_condition() -> None:
    losses = choice({"name": "hist"}, {"name": "proxy_anchor"})
    (line,) = problems(space={"loss": losses, "loss.lambda_s": uniform(0, 1)})
    assert line.startswith("space.loss.lambda_s: unknown key.")
    sweep(space={"loss": losses, "loss.lambda_s": uniform(0, 1, when={"loss.name": ["hist"]})})


def test_values_that_do_not_fit_each_other_are_found_by_drawing() -> None:
    space = {"training.epochs": choice(4, 9), "schedule.warmup_epochs": choice(1, 6)}
    (line,) = problems(space=space)
    assert line.startswith("space: schedule.warmup_epochs (6) and schedule.delay_epochs (0) must be below")
    assert line.endswith("(for instance with training.epochs=4, schedule.warmup_epochs=6)")
    sweep(space=space | {"schedule.warmup_epochs": choice(1, 6, when={"training.epochs": [9]})})


@pytest.mark.parametrize("path", NOT_SEARCHED)
def test_what_may_not_be_searched_says_why(path: str) -> None:
    (line,) = [line for line in problems(space={path: choice(1, 2)}) if "may not be searched" in line]
    assert line == f"space.{path}: may not be searched, for {NOT_SEARCHED[path]}"


def test_what_may_not_be_searched_is_there() -> None:
    plain = sweep().pack.plain()
    for path in (*NOT_SEARCHED, *(path for path in CHANGEABLE if not path.startswith("loss."))):
        *parents, last = path.split(".")
        place = plain
        for key in parents:
            place = place[key]
        assert last in place, path
    assert {path.split(".")[0] for path in NOT_SEARCHED} <= set(PackConfig.model_fields)


@pytest.mark.parametrize("path", ["evaluation.nmi", "selection.split", "resources.gpus_per_worker", "folds.0"])
def test_nor_what_lies_below(path: str) -> None:
    assert any("may not be searched" in line for line in problems(space={path: choice(True, False)}))


def test_nor_a_part_that_holds_such_a_path() -> None:
    (line,) = problems(
        space={"training": choice({"epochs": 2, "evaluate_every": 1}, {"epochs": 3, "evaluate_every": 1})}
    )
    assert line.startswith("space.training: may not be searched as a whole, for it holds training.evaluate_every")


ASHA, HYPERBAND, PBT = {"name": "asha"}, {"name": "hyperband"}, {"name": "pbt"}
LR = {"optimizer.lr": uniform(1e-4, 1e-2, "log_uniform")}
RULES: list[tuple[dict[str, Any], str]] = [
    ({"seeds": [1, 2, 1]}, "seeds: must not repeat a seed"),
    ({"seeds": []}, "seeds: must name at least one seed"),
    ({"name": "A b"}, "name: must be 1 to 80 of a-z"),
    ({"space": {}}, "space: must name at least one path"),
    ({"trials": 0}, "trials: "),
    ({"trials": None}, "trials: must be given, for searcher 'random' comes to no end"),
    ({"trials": 13, "searcher": {"name": "grid", "points": 3}}, "trials: must not be above the 12 configurations"),
    ({"searcher": {"name": "grid", "points": 1000}}, "searcher: the grid has more than 10000 configurations"),
    ({"searcher": {"name": "gird"}}, "searcher: 'gird' is not known. Did you mean 'grid'?"),
    ({"scheduler": {"name": "ahsa"}}, "scheduler: 'ahsa' is not known. Did you mean 'asha'?"),
    ({"scheduler": {**ASHA, "grace_epoch": 1}}, "scheduler.grace_epoch: unknown key. Did you mean 'grace_epochs'?"),
    ({"scheduler": {**ASHA, "reduction": 1}}, "scheduler.reduction: "),
    ({"scheduler": {**ASHA, "grace_epochs": 3}}, "scheduler.grace_epochs: must not be above the pack's"),
    ({"scheduler": HYPERBAND}, "scheduler.brackets: the first rung of the last bracket would be epoch 9"),
    ({"selection": {"split": "last"}}, "selection.split: 'last' is not one of"),
    ({"selection": {"split": "test", "folds": 2}}, "selection.folds: must be 1 with selection.split test"),
    ({"selection": {"folds": 0}}, "selection.folds: "),
    ({"selection": {"fraction": 1}}, "selection.fraction: "),
    (of_pack("output='s3://bucket/runs'"), "pack.output: a sweep needs a folder"),
    (of_pack("loss.tua=3"), "pack.loss.tua: unknown key. Did you mean 'tau'?"),
    ({"pack": 3}, "pack: "),
    ({"space": LR, "scheduler": PBT, "searcher": {"name": "optuna"}}, "searcher.name: must be random"),
    ({"space": LR, "scheduler": PBT, "searcher": {"name": "grid"}}, "searcher.name: must be random"),
    ({"space": LR, "scheduler": PBT, "trials": 3}, "trials: must be 4 or more with scheduler 'pbt', got 3"),
    ({"space": LR, "scheduler": PBT, "seeds": [0, 1]}, "scheduler: 'pbt' copies one member"),
    ({"space": LR, "scheduler": PBT, "selection": {"folds": 2}}, "scheduler: 'pbt' copies one member"),
    ({"space": LR, "scheduler": {**PBT, "interval_epochs": 5}}, "scheduler.interval_epochs: must not be above"),
    ({"space": LR, "scheduler": {**PBT, "quantile": 0.6}}, "scheduler.quantile: "),
    ({"space": LR, "scheduler": PBT, **of_pack("resources.workers_per_member=2")}, "scheduler: 'pbt' needs"),
    ({"space": {"model.dim": DIM}, "scheduler": PBT}, "space.model.dim: cannot change in the middle of a training"),
    ({"space": {"loss": choice({"name": "hist"})}, "scheduler": PBT}, "space.loss: cannot change in the middle of"),
    ({"space": {"optimizer.lr": choice(0.1, 0.2)}, "scheduler": PBT}, "space.optimizer.lr: must be continuous"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "start"), RULES)
def test_one_problem(changes: dict[str, Any], start: str) -> None:
    (line,) = problems(**changes)
    assert line.startswith(start)


def test_a_searched_length_of_training_does_not_go_with_rungs() -> None:
    space = {"training.epochs": choice(2, 4)}
    (line,) = problems(space=space, scheduler=ASHA)
    assert line.startswith("space.training.epochs: cannot be searched with scheduler 'asha'")
    sweep(space=space)


def test_rungs_are_where_trials_have_scores() -> None:
    pack = of_pack("training.epochs=9", "training.evaluate_every=2")
    (line,) = problems(scheduler={**ASHA, "grace_epochs": 3}, **pack)
    assert line.startswith("scheduler.grace_epochs: must be a multiple of the pack's training.evaluate_every (2)")
    assert "got 3" in line
    sweep(scheduler={**ASHA, "grace_epochs": 4}, **pack)


@pytest.mark.parametrize("scheduler", [ASHA, {**HYPERBAND, "brackets": 1}, PBT, {"name": "none"}])
def test_what_works(scheduler: dict[str, Any]) -> None:
    assert sweep(space=LR, scheduler=scheduler).scheduler.name == scheduler["name"]


def test_without_optuna_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    (line,) = problems(searcher={"name": "optuna"})
    assert line.endswith('pip install "sfora-ray[optuna]"')


def test_all_problems_in_one_error() -> None:
    lines = problems(
        space={
            "recipe.tua": uniform(0.1, 1),
            "model.dim": choice(),
            "recipe.weight": uniform(0, 1, "log_uniform"),
            "recipe.tau": uniform(-1, 1),
            "optimizer.lr": uniform(0.1, 1, when={"model.dim": [8], "model.dmi": [8]}),
            "seeds": choice(1, 2),
        },
        seeds=[1, 1],
        trials=None,
        scheduler={**ASHA, "grace_epochs": 7},
    )
    places = {line.split(": ")[0] for line in lines}
    assert places == {
        "space.recipe.tua",
        "space.model.dim.values",
        "space.recipe.weight.low",
        "space.recipe.tau.low",
        "space.optimizer.lr.when.model.dmi",
        "space.seeds",
        "seeds",
        "trials",
        "scheduler.grace_epochs",
    }
    assert len(lines) == len(places)


def test_what_hangs_on_a_faulty_entry_is_not_blamed() -> None:
    losses = choice({"name": "proxy_anchor"}, {"name": "proxy_anchor"})
    (line,) = problems(space={"loss": losses, "loss.delta": uniform(0, 1, when={"loss.name": ["proxy_anchor"]})})
    assert line.startswith("space.loss.values: must not repeat a value")
