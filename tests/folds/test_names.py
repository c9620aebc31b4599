import pytest
from pydantic import BaseModel

from sfora_ray.errors import ConfigError
from sfora_ray.folds import (
    AnyFold,
    ComposedOptions,
    GpaOptions,
    UncentredOptions,
    WccnOptions,
    parse_fold,
)


class Config(BaseModel):
    folds: tuple[AnyFold, ...]


@pytest.mark.parametrize(
    ("text", "options", "name"),
    [
        ("uncentred:256", UncentredOptions(dim=256), "uncentred-256"),
        ("uncentred-256", UncentredOptions(dim=256), "uncentred-256"),
        ("wccn", WccnOptions(), "wccn"),
        ("wccn:64,shrinkage=10", WccnOptions(dim=64, shrinkage=10), "wccn-64-shrinkage=10.0"),
        ("gpa:start=medoid", GpaOptions(start="medoid"), "gpa-start=medoid"),
        ("gpa+wccn", ComposedOptions(chain=(GpaOptions(), WccnOptions())), "gpa+wccn"),
        ("gpa + wccn:64", ComposedOptions(chain=(GpaOptions(), WccnOptions(dim=64))), "gpa+wccn-64"),
    ],
)
def test_text_both_ways(text: str, options: UncentredOptions, name: str) -> None:
    assert parse_fold(text) == options
    assert options.canonical_name == name
    assert parse_fold(name) == options


def test_in_a_config_as_text_or_mapping() -> None:
    config = Config.model_validate({"folds": ["gpa+wccn:64", {"name": "wccn", "dim": 64, "shrinkage": 5}]})
    assert [fold.canonical_name for fold in config.folds] == ["gpa+wccn-64", "wccn-64-shrinkage=5.0"]
    assert Config.model_validate(config.model_dump(mode="json")) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uncentered:256", "Did you mean 'uncentred'"),
        ("mean:64", "Extra inputs are not permitted"),
        ("pca:0", "greater than or equal to 1"),
        ("wccn:64,32", "each once"),
        ("wccn:shrinkage=", "each once"),
        ("gpa_transductive+wccn", "gpa_transductive"),
        ("gpa+", "got 'gpa\\+'"),
        ("", "got ''"),
    ],
)
def test_what_is_not_a_fold(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_fold(text)
