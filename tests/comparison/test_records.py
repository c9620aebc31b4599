import json

import numpy as np
import pytest
from pydantic import ValidationError

from sfora_ray.comparison import Comparison, Source, compare
from sfora_ray.statistics import t_interval


def test_json_both_ways(compared: Comparison) -> None:
    text = json.dumps(compared.model_dump(mode="json"), allow_nan=False)
    assert Comparison.model_validate_json(text) == compared


def test_the_same_packs_give_the_same_record(two: tuple[Source, Source], compared: Comparison) -> None:
    assert compare(two) == compared


def test_an_entry_is_the_packs_own(two: tuple[Source, Source], compared: Comparison) -> None:
    for pack, entry in zip(two, compared.entries, strict=True):
        summary = pack.summary
        assert (entry.facts, entry.single, entry.curve) == (summary.pack, summary.single, summary.pack_curve)
        assert (entry.folds, entry.seeds, entry.source) == (summary.folds, (0, 1, 2, 3), pack.source)
    assert (compared.baseline.label, [entry.label for entry in compared.others]) == ("plain", ["better"])


def test_learning_curves_are_means_over_members(two: tuple[Source, Source], compared: Comparison) -> None:
    epochs = compared.baseline.epochs
    # The total loss is the noise plus the seed over the epoch.
    assert [(point.epoch, point.n) for point in epochs["train.loss"]] == [(1, 4), (2, 4)]
    assert [point.mean for point in epochs["train.loss"]] == pytest.approx([1.3 + 1.5, 1.3 + 0.75])
    expected = t_interval(1.3 + np.arange(4) / 2)
    assert epochs["train.loss"][1].ci95 == pytest.approx(expected.ci95)
    (scored,) = epochs["test.recall_at_1"]
    assert scored.epoch == 2
    assert scored.mean == pytest.approx(two[0].summary.single["recall_at_1"].mean)


@pytest.mark.parametrize("names", [("plain", "plain"), ("plain", "elsewhere")])
def test_a_pair_must_be_of_the_entries(compared: Comparison, names: tuple[str, str]) -> None:
    plain = compared.model_dump(mode="json")
    if names[1] == "plain":
        plain["entries"][1]["label"] = "plain"
    else:
        plain["seeds"][0]["other"] = "elsewhere"
    with pytest.raises(ValidationError, match=r"different labels|must be the first entry and another"):
        Comparison.model_validate(plain)
