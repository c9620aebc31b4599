import itertools

import numpy as np
import pytest

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.comparison import Comparison, Source
from sfora_ray.retrieval import score
from sfora_ray.statistics import Subset, subset_interval


def by_hand(tables: list[EmbeddingTable], subset: Subset) -> float:
    rows = np.concatenate([tables[member].embeddings for member in subset], axis=1)
    return score(rows, tables[0].labels, nmi=False).map_at_r


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_same_choices_of_seeds_on_both_sides(two: tuple[Source, Source], compared: Comparison, size: int) -> None:
    (found,) = [point for point in compared.sizes if (point.size, point.metric) == (size, "map_at_r")]
    values: list[dict[Subset, float]] = []
    for pack in two:
        assert pack.folder is not None
        tables = [pack.folder.embeddings(spec, "test") for spec in pack.specs]
        values.append({s: by_hand(tables, s) for s in itertools.combinations(range(4), size)})
    ours, theirs = values
    expected = subset_interval({s: theirs[s] - ours[s] for s in ours}, 4)
    assert found.subsets == len(ours)
    assert (found.dim, found.seeds) == (8 * size, (0, 1, 2, 3))
    assert (found.baseline_mean, found.other_mean) == pytest.approx(
        (np.mean(list(ours.values())), np.mean(list(theirs.values()))), abs=1e-6
    )
    assert found.difference == pytest.approx(expected.mean, abs=1e-6)
    assert (found.ci95 is None) == (size == 4)
    if expected.ci95 is not None:
        assert found.ci95 == pytest.approx(expected.ci95, abs=1e-5)


def test_packs_of_one_are_the_members(compared: Comparison) -> None:
    points = {point.metric: point for point in compared.sizes if point.size == 1}
    for test in compared.seeds:
        assert points[test.metric].difference == pytest.approx(test.difference.mean, abs=1e-6)
        assert points[test.metric].ci95 == pytest.approx(test.difference.ci95, abs=1e-5)
