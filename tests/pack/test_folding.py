"""Folds, the pack-size curve and single members against direct calculations on random blocks."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

from sfora_ray.arrays import l2_normalize
from sfora_ray.config.pack import EvaluationOptions
from sfora_ray.folds import GpaOptions, Moments, WccnOptions, parse_fold
from sfora_ray.pack.curve import size_curve
from sfora_ray.pack.folding import fold_members, fold_pack
from sfora_ray.pack.summary import FoldFacts, Spread, Summary
from sfora_ray.retrieval import score
from tests.pack.blocks import pack_blocks

BLOCKS = pack_blocks()
MOMENTS = Moments.of(BLOCKS.train.blocks, BLOCKS.train.labels)
NAMES = ("mean", "gpa", "wccn", "gpa+wccn", "uncentred:3", "pca:3", "gpa_transductive")
EVALUATION = EvaluationOptions(curve_subsets=20)


@pytest.fixture(scope="module")
def facts() -> dict[str, FoldFacts]:
    outcomes = fold_pack(BLOCKS, MOMENTS, [parse_fold(name) for name in NAMES], EVALUATION, "cpu")
    return {outcome.facts.name: outcome.facts for outcome in outcomes}


def test_the_concatenation_comes_first_and_each_fold_once(facts: dict[str, FoldFacts]) -> None:
    assert list(facts) == ["concat", *(parse_fold(name).canonical_name for name in NAMES)]
    twice = fold_pack(BLOCKS, MOMENTS, [parse_fold("mean"), parse_fold("mean")], EVALUATION, "cpu")
    assert [outcome.facts.name for outcome in twice] == ["concat", "mean"]


def test_the_concatenation_is_scored_as_written_out(facts: dict[str, FoldFacts]) -> None:
    rows = np.asarray(l2_normalize(np.concatenate(BLOCKS.test.blocks, axis=1)), dtype=np.float32)
    assert facts["concat"].metrics == pytest.approx(score(rows, BLOCKS.test.labels).metrics())
    assert (facts["concat"].retained, facts["concat"].dim, facts["concat"].fitted_on) == (1.0, 16, "none")


@pytest.mark.parametrize("name", ["mean", "gpa", "wccn", "gpa+wccn", "uncentred:3", "pca:3"])
def test_a_fold_is_fitted_on_train_and_scored_on_test(facts: dict[str, FoldFacts], name: str) -> None:
    options = parse_fold(name)
    fitted = options.fit_rows(BLOCKS.train.blocks, BLOCKS.train.labels)  # type: ignore[union-attr]
    direct = score(fitted.transform(BLOCKS.test.blocks), BLOCKS.test.labels)
    found = facts[options.canonical_name]
    assert found.metrics == pytest.approx(direct.metrics())
    assert found.retained == pytest.approx(direct.recall_at_1 / facts["concat"].metrics["recall_at_1"])
    assert found.fitted_on == ("none" if name == "mean" else "train")
    assert found.dim == fitted.dim


def test_a_transductive_fold_says_so(facts: dict[str, FoldFacts]) -> None:
    assert facts["gpa_transductive"].fitted_on == "test"


def test_the_interval_holds_the_recall(facts: dict[str, FoldFacts]) -> None:
    for one in facts.values():
        assert one.ci95 is not None
        assert one.ci95[0] <= one.metrics["recall_at_1"] <= one.ci95[1]


def test_folds_that_improve_one_member_are_told_for_single_members_too() -> None:
    folds = [GpaOptions(), WccnOptions()]
    (found,) = fold_members(BLOCKS, MOMENTS, folds, EVALUATION, "cpu", whole=0.5)
    recalls = []
    for train, test in zip(BLOCKS.train.blocks, BLOCKS.test.blocks, strict=True):
        fitted = WccnOptions().fit_rows([train], BLOCKS.train.labels)
        recalls.append(score(fitted.transform([test]), BLOCKS.test.labels).recall_at_1)
    assert found.name == "single:wccn"
    assert found.metrics["recall_at_1"] == pytest.approx(np.mean(recalls))
    assert found.retained == pytest.approx(np.mean(recalls) / 0.5)


def test_the_curve_is_the_mean_over_concatenations() -> None:
    curve = size_curve(BLOCKS.test, EVALUATION, "cpu")
    assert [(point.size, point.subsets) for point in curve] == [(1, 4), (2, 6), (3, 4), (4, 1)]
    for point in curve:
        direct = []
        for subset in itertools.combinations(BLOCKS.test.blocks, point.size):
            rows = np.asarray(l2_normalize(np.concatenate(subset, axis=1)), dtype=np.float32)
            direct.append(score(rows, BLOCKS.test.labels, nmi=False).metrics())
        for key, value in point.metrics.items():
            assert value == pytest.approx(np.mean([one[key] for one in direct]))
        assert set(point.metrics) == set(direct[0])


def test_the_interval_of_single_members_is_students() -> None:
    curve = size_curve(BLOCKS.test, EVALUATION, "cpu")
    values = [score(block, BLOCKS.test.labels, nmi=False).recall_at_1 for block in BLOCKS.test.blocks]
    reach = stats.t.ppf(0.975, 3) * np.std(values, ddof=1) / math.sqrt(4)
    assert curve[0].ci95 is not None
    assert curve[0].ci95["recall_at_1"] == pytest.approx((np.mean(values) - reach, np.mean(values) + reach))
    assert curve[-1].ci95 is None


def test_a_curve_takes_no_more_subsets_than_asked() -> None:
    curve = size_curve(BLOCKS.test, EvaluationOptions(curve_subsets=2), "cpu")
    assert [point.subsets for point in curve] == [2, 2, 2, 1]


def test_a_pack_of_one_has_a_curve_of_one_point() -> None:
    (point,) = size_curve(pack_blocks(1).test, EVALUATION, "cpu")
    assert (point.size, point.subsets, point.ci95) == (1, 1, None)


def test_spread_survives_json() -> None:
    for spread in (Spread(mean=0.5, std=None, n=1, ci95=None), Spread(mean=1 / 3, std=0.1, n=3, ci95=(0.1, 0.5))):
        assert Spread.model_validate(json.loads(spread.model_dump_json())) == spread
    assert Summary.model_fields["format"].default == 1


def test_folds_are_scored_on_coarse_classes_where_there_are_some() -> None:
    coarse = BLOCKS.test.labels // 2
    blocks = dataclasses.replace(BLOCKS, test=dataclasses.replace(BLOCKS.test, coarse_labels=coarse))
    found = fold_pack(blocks, MOMENTS, [parse_fold("gpa")], EVALUATION, "cpu")
    for outcome in found:
        rows = outcome.fitted.transform(blocks.test.blocks)
        expected = score(rows, coarse, nmi=False)
        assert outcome.facts.metrics["coarse_recall_at_1"] == pytest.approx(expected.recall_at_1)
        assert outcome.facts.metrics["coarse_map_at_r"] == pytest.approx(expected.map_at_r)
