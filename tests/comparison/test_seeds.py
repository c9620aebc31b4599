from pathlib import Path

import numpy as np
import pytest

from sfora_ray.comparison import Comparison, Source, compare
from sfora_ray.comparison.records import SeedTest
from sfora_ray.statistics import holm, paired_interval, permutation_test, seeds_needed, t_interval
from tests.comparison.packs import make_pack, source, without_folder


def of_metric(comparison: Comparison, metric: str) -> list[SeedTest]:
    return [test for test in comparison.seeds if test.metric == metric]


@pytest.mark.parametrize("metric", ["recall_at_1", "map_at_r", "r_precision"])
def test_the_same_seed_is_one_pair(two: tuple[Source, Source], compared: Comparison, metric: str) -> None:
    ours, theirs = ([pack.values(metric)[seed] for seed in (0, 1, 2, 3)] for pack in two)
    (found,) = of_metric(compared, metric)
    expected = paired_interval(theirs, ours)
    assert (found.baseline, found.other, found.test, found.seeds) == ("plain", "better", "paired", (0, 1, 2, 3))
    assert found.difference.mean == pytest.approx(np.mean(theirs) - np.mean(ours))
    assert found.difference.ci95 == pytest.approx(expected.ci95)
    assert found.baseline_spread.ci95 == t_interval(ours).ci95
    assert found.other_spread.mean == pytest.approx(np.mean(theirs))
    assert found.p_value == permutation_test(np.subtract(theirs, ours)).p_value
    assert (found.exact, found.p_smallest) == (True, 0.125)
    assert found.seeds_for_point == seeds_needed(expected.std or 0, 0.01)


def test_less_noise_is_better_by_every_seed(compared: Comparison) -> None:
    (found,) = of_metric(compared, "map_at_r")
    assert found.difference.mean > 0
    assert found.effect is not None
    assert found.effect.d_z > 0
    assert found.p_value == found.p_smallest
    assert any("cannot give a p-value below 0.125" in line for line in compared.labels)


def test_every_metric_that_both_have(compared: Comparison) -> None:
    metrics = [test.metric for test in compared.seeds]
    assert metrics[:2] == ["recall_at_1", "recall_at_2"]
    assert "nmi" not in metrics


def test_pairs_follow_seeds_not_places(tmp_path: Path) -> None:
    first = source(tmp_path, "first", "seeds=[3, 0, 7, 1]")
    other = source(tmp_path, "other", "seeds=[1, 2, 3, 0]", noise=1.2)
    found = compare([first, other])
    (test,) = of_metric(found, "recall_at_1")
    assert test.seeds == (3, 0, 1)
    ours, theirs = ([pack.values("recall_at_1")[seed] for seed in (3, 0, 1)] for pack in (first, other))
    assert test.difference.mean == pytest.approx(np.mean(theirs) - np.mean(ours))
    assert "seed 7 of first: other has no finished member of that seed" in found.omitted
    assert "seed 2 of other: first has no finished member of that seed" in found.omitted


@pytest.mark.parametrize("seeds", ["[5, 6, 7]", "[2, 6, 7]"])
def test_too_few_shared_seeds_are_independent_draws(tmp_path: Path, seeds: str) -> None:
    first, other = source(tmp_path, "first", "seeds=[0, 1, 2]"), source(tmp_path, "other", f"seeds={seeds}", noise=1.2)
    found = compare([first, other])
    (test,) = of_metric(found, "map_at_r")
    assert (test.test, test.seeds, test.difference.n) == ("welch", (), 6)
    assert test.difference.mean == pytest.approx(
        other.summary.single["map_at_r"].mean - first.summary.single["map_at_r"].mean
    )
    assert (test.effect, test.p_smallest, test.exact) == (None, None, False)
    assert any("independent draws (Welch)" in line for line in found.omitted)


def test_a_single_against_a_pack_that_has_its_seed(tmp_path: Path) -> None:
    pack, single = source(tmp_path, "pack", "seeds=[0, 1, 2, 3]"), source(tmp_path, "one", "seeds=[2]", noise=1.2)
    found = compare([pack, single])
    (test,) = of_metric(found, "recall_at_1")
    assert (test.seeds, test.p_value, test.effect, test.difference.ci95) == ((2,), 1, None, None)
    assert test.baseline_spread.n == 1
    assert any(line.startswith("single of width 8 against ensemble of 4 (width 4 x 8)") for line in found.labels)
    assert any("one pair has no interval" in line for line in found.omitted)
    # Single against single; the pack's concatenation is no match for it.
    assert {(query.system, query.size, query.dim) for query in found.queries} == {("single", 1, 8)}
    assert {point.size for point in found.sizes} == {1}


def test_a_single_whose_seed_the_pack_has_not(tmp_path: Path) -> None:
    found = compare([source(tmp_path, "pack", "seeds=[0, 1]"), source(tmp_path, "one", "seeds=[9]")])
    assert (found.seeds, found.queries, found.sizes) == ((), (), ())
    assert any("share no seed" in line for line in found.omitted)


def test_holm_over_the_pairs_of_one_metric(tmp_path: Path) -> None:
    seeds = "seeds=[0, 1, 2, 3, 4, 5]"
    packs = [source(tmp_path, f"pack{place}", seeds, noise=noise) for place, noise in enumerate((1.0, 1.02, 1.5, 0.8))]
    found = compare(packs)
    for metric in ("recall_at_1", "map_at_r"):
        tests = of_metric(found, metric)
        assert [test.other for test in tests] == ["pack1", "pack2", "pack3"]
        assert [test.p_holm for test in tests] == pytest.approx(holm([test.p_value for test in tests]))
        for system in ("single", "concat", "fold:gpa"):
            asked = [query for query in found.queries if (query.metric, query.system) == (metric, system)]
            assert [query.other for query in asked] == ["pack1", "pack2", "pack3"]
            assert [query.p_holm for query in asked] == pytest.approx(holm([query.p_value for query in asked]))
    assert any(test.p_holm > test.p_value for test in found.seeds)


def test_only_finished_members(tmp_path: Path) -> None:
    whole = source(tmp_path, "whole", "seeds=[0, 1, 2, 3]")
    partial = Source.of_folder(make_pack(tmp_path, "partial", "seeds=[0, 1, 2, 3]", noise=1.2, finished=3))
    found = compare([whole, partial])
    assert found.others[0].seeds == (0, 1, 2)
    assert {test.seeds for test in found.seeds} == {(0, 1, 2)}
    assert {point.size for point in found.sizes} == {1, 2, 3}
    assert any(line.startswith("partial pack: 3 of 4 members of partial finished") for line in found.labels)
    assert any(line.startswith("ensemble of 3 (width 3 x 8) against ensemble of 4") for line in found.labels)
    assert {query.system for query in found.queries} == {"single", "concat"}
    assert any("folds of whole and partial" in line for line in found.omitted)


def test_records_alone_are_compared_over_seeds(two: tuple[Source, Source], compared: Comparison) -> None:
    found = compare([two[0], without_folder(two[1])])
    assert found.seeds == compared.seeds
    assert (found.queries, found.sizes, found.others[0].epochs) == ((), (), {})
    assert [entry.has_folder for entry in found.entries] == [True, False]
    assert "queries and ensembles of better: its run folder is not at hand, only its records" in found.omitted
    assert compare([without_folder(two[0]), two[1]]).seeds == compared.seeds
