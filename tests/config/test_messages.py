"""What is told about a value of the wrong kind: a name or a number for a part, true for a number, a whole part."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfora_ray.config.load import build_config
from sfora_ray.config.overrides import apply_overrides
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import ConfigError
from sfora_ray.losses import LOSSES
from sfora_ray.recipes import RECIPES
from tests.tiny import tiny_values


def problem(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        build_config(apply_overrides(tiny_values(Path("photos"), Path("here")), overrides), place="bad.yaml")
    first, *lines = str(caught.value).splitlines()
    assert first == "bad.yaml: 1 problem(s)"
    assert len(lines) == 1
    return lines[0].removeprefix("  - ")


@pytest.mark.parametrize(
    ("override", "place", "name", "needed"),
    [
        ("loss=triplet", "loss", "triplet", ""),
        ("miner=multi_similarity", "miner", "multi_similarity", ""),
        ("sampler=random", "sampler", "random", ""),
        ("recipe.base=memory", "recipe.base", "memory", ""),
        ("model.backbone=resnet18", "model.backbone", "resnet18", ""),
        ("tracking=mlflow", "tracking", "mlflow", ""),
        ("data=image_folder", "data", "image_folder", ", root: ..."),
    ],
)
def test_a_bare_name_for_a_part_is_told_how_it_is_written(override: str, place: str, name: str, needed: str) -> None:
    said = f"{place}: expected a part with its options, got '{name}' (str). Write {{name: {name}{needed}}}"
    assert problem(override) == said


def test_the_key_is_that_which_tells_the_parts_apart() -> None:
    assert problem("data.split=halves").endswith("got 'halves' (str). Write {kind: halves}")
    assert " Write {kind: ...} with one of: seeded, interleaved, " in problem("data.split=no")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "loss=tripelt",
            f"got 'tripelt' (str). Did you mean 'triplet'? Write {{name: ...}} with one of: {', '.join(LOSSES)}",
        ),
        ("loss=7", f"got 7 (int). Write {{name: ...}} with one of: {', '.join(LOSSES)}"),
        ("recipe=", f"got None (NoneType). Write {{name: ...}} with one of: {', '.join(RECIPES)}"),
        ("folds=[3]", "got 3 (int). Write {name: ...} with one of: concat, mean, procrustes, gpa"),
    ],
)
def test_what_names_no_part_is_told_the_names(override: str, said: str) -> None:
    assert f": expected a part with its options, {said}" in problem(override)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("model=3", "model: expected keys backbone, dim, frozen_batch_norm, "),
        ("data.coarse=a.csv", "data.coarse: expected keys class_column, coarse_column, path, got 'a.csv' (str)"),
        ("evaluation=on", "evaluation: expected keys batch_size, curve_subsets, nmi, singletons, got True (bool)"),
        ("schedule=cosine", "schedule: expected keys delay_epochs, every_epochs, gamma, name, warmup_epochs, got 'cos"),
    ],
)
def test_a_part_of_one_kind_is_told_its_keys(override: str, said: str) -> None:
    assert problem(override).startswith(said)


def test_a_part_of_one_kind_may_be_written_by_its_name() -> None:
    assert problem("optimizer=adam").endswith(", weight_decay, got 'adam' (str). Write {name: adam}")


@pytest.mark.parametrize(
    ("overrides", "end"),
    [
        (["sampler={name: n_pairs, batch_size: 120, candidates: 30}"], "half of batch_size), got 30"),
        (["sampler={name: n_pairs, batch_size: 9}"], "made of pairs, got 9"),
        (["loss={name: contextual, weighting: program_256, gamma: 0.5}"], "for the contrast gets the rest"),
        (["selection.validation_fold=3"], "must be below validation_folds (None)"),
    ],
)
def test_what_was_given_is_told_once_and_no_part_is_written_out(overrides: list[str], end: str) -> None:
    said = problem(*overrides)
    assert said.endswith(end)
    assert said.count("got ") <= 1
    assert "{" not in said


def test_a_long_value_is_cut_and_no_password_is_told() -> None:
    said = problem(f"schedule.name={'x' * 300}")
    assert "x" * 50 in said
    assert len(said) < 200
    with pytest.raises(ConfigError, match=r"'uri' to set below str 'http://\*\*\*@host'") as caught:
        apply_overrides({"tracking": "http://me:secret@host"}, ["tracking.uri=a"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("optimizer.lr=true", "optimizer.lr: expected a number, got True (bool)"),
        ("optimizer.weight_decay=no", "optimizer.weight_decay: expected a number, got False (bool)"),
        ("training.checkpoint_every=true", "training.checkpoint_every: expected a number, got True (bool)"),
        ("loss={name: contrastive, positive_margin: yes}", "loss.positive_margin: expected a number, got True (bool)"),
        ("seeds=[4, true]", "seeds[1]: expected a number, got True (bool)"),
        ("input.train.crop_scale=[0.5, on]", "input.train.crop_scale[1]: expected a number, got True (bool)"),
        ("model.backbone.widths.0=true", "model.backbone.widths[0]: expected a number, got True (bool)"),
        ("sampler.samples_per_class=yes", "sampler.samples_per_class: expected a number, got True (bool)"),
    ],
)
def test_a_truth_value_is_no_number(override: str, said: str) -> None:
    assert problem(override) == said


def test_every_truth_value_for_a_number_is_told_at_once() -> None:
    values = apply_overrides(tiny_values(Path("photos"), Path("here")), ["optimizer.lr=true", "seeds=[true, 4, no]"])
    with pytest.raises(ConfigError, match=r"3 problem\(s\)"):
        build_config(values, place="bad.yaml")


def test_where_true_is_meant_it_stays() -> None:
    values = apply_overrides(
        tiny_values(Path("photos"), Path("here")), ["evaluation.nmi=false", "training.compile=yes"]
    )
    config = build_config(values, place="good.yaml")
    assert (config.evaluation.nmi, config.training.compile) == (False, True)
    assert PackConfig.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize(
    ("overrides", "way_out"),
    [
        (
            ["loss={name: contextual}", "sampler={name: n_pairs, batch_size: 120}"],
            "2, got 4. Change loss.k to 2, or use sampler.name 'per_class' with samples_per_class 4",
        ),
        (
            ["loss={name: contextual}", "sampler={name: per_class, batch_size: 12, samples_per_class: 3}"],
            "3, got 4. Use sampler.name 'per_class' with samples_per_class 4",
        ),
        (
            ["loss={name: supcon}", "sampler={name: n_pairs, batch_size: 2}"],
            "holds one. Set sampler.batch_size to 4 or more",
        ),
        (
            ["loss={name: supcon}", "sampler={name: per_class, batch_size: 4, samples_per_class: 4}"],
            "holds one. Set sampler.batch_size to 8 or more, or sampler.samples_per_class to 2 or less",
        ),
    ],
)
def test_no_way_out_names_a_key_that_the_sampler_lacks(overrides: list[str], way_out: str) -> None:
    assert problem(*overrides).endswith(way_out)
