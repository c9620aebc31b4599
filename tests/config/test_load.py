"""Problems are all told at once, in the words of who wrote the YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfora_ray.config.load import build_config, load_config
from sfora_ray.config.overrides import apply_overrides
from sfora_ray.config.yaml_text import dump_yaml, parse_yaml
from sfora_ray.errors import ConfigError
from sfora_ray.losses import LOSSES
from tests.tiny import tiny_config, tiny_values


def values(**changes: Any) -> dict[str, Any]:
    return tiny_values(Path("photos"), Path("here")) | changes


def problems(given: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build_config(given, place="bad.yaml")
    first, *lines = str(caught.value).splitlines()
    assert first == f"bad.yaml: {len(lines)} problem(s)"
    return [line.removeprefix("  - ") for line in lines]


@pytest.mark.parametrize(
    ("changes", "start", "end"),
    [
        ({"los": 1}, "los: unknown key. Did you mean 'loss'? Valid keys: cache_dir, data, ", "training"),
        ({"loss": {"name": "hist", "tua": 3}}, "loss.tua: unknown key. Did you mean 'tau'?", "tau"),
        ({"loss": {"name": "hits"}}, "loss: 'hits' is not known. Did you mean 'hist'?", ", ".join(LOSSES)),
        (
            {"loss": {"name": "hist_proxy_anchor", "hist": {"tua": 3}}},
            "loss.hist.tua: unknown key. Did you mean 'tau'?",
            "tau",
        ),
        ({"loss": {"tau": 3}}, "loss: needs a 'name'. Choose one of: hist, proxy_anchor", ""),
        ({"schedule": {"name": "cosin"}}, "schedule.name: 'cosin' is not one of ", "Did you mean 'cosine'?"),
        ({"seeds": [0, "a"]}, "seeds[1]: expected int, got 'a' (str)", ""),
        ({"optimizer": {"lr": "fast"}}, "optimizer.lr: expected float, got 'fast' (str)", ""),
        ({"optimizer": {"lr": "1e-4x"}}, "optimizer.lr: expected float, got '1e-4x' (str)", ""),
        ({"optimizer": {"lr": -1}}, "optimizer.lr: ", "got -1 (int)"),
        ({"optimizer": {"lr": float("nan")}}, "optimizer.lr: expected a finite number, got nan (float)", ""),
        ({"seeds": []}, "seeds: must name at least one seed, got [] (list)", ""),
        ({"seeds": [1, 1]}, "seeds: must not repeat a seed", "(list)"),
        ({"name": "A b"}, "name: must be 1 to 80 of a-z", "got 'A b' (str)"),
        ({"training": {"deterministic": "perhaps"}}, "training.deterministic: expected true or false", "(str)"),
        ({"data": {"name": "image_folder"}}, "data.root: must be given", ""),
    ],
)
def test_one_problem(changes: dict[str, Any], start: str, end: str) -> None:
    lines = problems(values(**changes))
    assert len(lines) == 1
    assert lines[0].startswith(start)
    assert lines[0].endswith(end)


def test_all_problems_in_one_error() -> None:
    given = values(seeds=["a"], loss={"name": "hist", "tua": 1}, los=1, training={"epochs": 0})
    del given["model"]
    lines = problems(given)
    assert len(lines) == 5
    for place in ("seeds[0]: ", "loss.tua: ", "los: ", "training.epochs: ", "model: must be given"):
        assert sum(line.startswith(place) for line in lines) == 1


def test_a_fold_of_the_wrong_name_is_told_with_the_right_one() -> None:
    (line,) = problems(values(folds=["gpa", "wcnc"]))
    assert line.startswith("folds[1]")
    assert "Did you mean 'wccn'?" in line


def test_a_batch_that_leaves_a_worker_without_an_image_is_refused() -> None:
    (line,) = problems(values(resources={"workers_per_member": 5}))
    assert "sampler.batch_size (12) must be a multiple of resources.workers_per_member (5)" in line


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-4", 1e-4),
        ("1.0e-4", 1e-4),
        ("1.e-4", 1e-4),
        ("1E-4", 1e-4),
        ("0.0001", 1e-4),
        ("4e2", 400.0),
        ("+4e+2", 400.0),
        ("-4e2", -400.0),
        ("1_0e1", 100.0),
    ],
)
def test_every_spelling_of_a_float_is_a_number(text: str, number: float) -> None:
    read = parse_yaml(f"lr: {text}", place="here")["lr"]
    assert isinstance(read, float)
    assert read == number


@pytest.mark.parametrize("text", ["1e-4x", "e4", "1e", "v1e4", "'1e-4'"])
def test_text_stays_text(text: str) -> None:
    assert isinstance(parse_yaml(f"lr: {text}", place="here")["lr"], str)


def test_all_spellings_give_one_pack(tmp_path: Path) -> None:
    packs = [
        tiny_config(tmp_path, tmp_path, "loss={name: proxy_anchor}", f"optimizer.lr={rate}", f"loss.proxy_lr={own}")
        for rate, own in (("1e-4", "4e2"), ("1.0e-4", "400.0"), ("0.0001", "400"), ("'1e-4'", "'4e2'"))
    ]
    assert len({pack.digest() for pack in packs}) == 1
    assert packs[0].plain()["optimizer"]["lr"] == 0.0001
    assert packs[0].plain()["loss"]["proxy_lr"] == 400


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("optimizer.lr=1e-4", ("optimizer", "lr"), 1e-4),
        ("seeds=[7, 8]", ("seeds",), [7, 8]),
        ("seeds.1=9", ("seeds", 1), 9),
        ("model.backbone.widths.3=4", ("model", "backbone", "widths", 3), 4),
        ("loss.hgnn_input=raw", ("loss", "hgnn_input"), "raw"),
        ("evaluation.nmi=false", ("evaluation", "nmi"), False),
        ("optimizer.head_lr=null", ("optimizer", "head_lr"), None),
        ("tracking.uri=sqlite:///a=b.db", ("tracking", "uri"), "sqlite:///a=b.db"),
    ],
)
def test_an_override_sets_one_value(override: str, path: tuple[str | int, ...], value: Any) -> None:
    before = values()
    place: Any = apply_overrides(before, [override])
    for key in path:
        place = place[key]
    assert place == value
    assert before == values()


def test_the_last_override_wins() -> None:
    assert apply_overrides({}, ["a.b=1", "a.b=2", "a.c=3"]) == {"a": {"b": 2, "c": 3}}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("optimizer.lr", "must be path=value"),
        ("=3", "must be path=value"),
        ("seeds.7=1", "there is no '7' to set below list"),
        ("seeds.x=1", "there is no 'x' to set below list"),
        ("name.x=1", "there is no 'x' to set below str"),
        ("optimizer.lr=[1", "not readable as YAML"),
    ],
)
def test_a_bad_override_is_refused(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match="override") as caught:
        apply_overrides(values(), [override])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a\nname: b\n", "key 'name' stands twice in the block at line 1"),
        ("a: 1\nloss:\n  tau: 1\n  tau: 2\n", "key 'tau' stands twice in the block at line 3"),
        ("name: [a\n", "not readable as YAML"),
        ("name: !!python/object:os.system x\n", "not readable as YAML"),
        ("- a\n- b\n", "must hold keys and values at its top, got list"),
        ("", "must hold keys and values at its top, got NoneType"),
    ],
)
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no readable config file"):
        load_config(tmp_path / "none.yaml")


def test_a_file_with_overrides(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(dump_yaml(values()))
    assert load_config(path, ["loss.tau=16"]).plain()["loss"]["tau"] == 16
