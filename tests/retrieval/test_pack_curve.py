import itertools

import numpy as np
import pytest

from sfora_ray.arrays import Float, Int64, l2_normalize
from sfora_ray.errors import DataError
from sfora_ray.retrieval import pack_curve, score, similarity


def _pack(seed: int = 0) -> tuple[list[Float], Int64]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 12, 80)
    centres = rng.normal(size=(12, 7))
    return [l2_normalize(centres[labels] + rng.normal(size=(80, 7))) for _ in range(4)], labels


def _all_subsets(members: int) -> list[tuple[int, ...]]:
    sizes = range(1, members + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(range(members), size)]


@pytest.mark.parametrize("budget", [80, 80 * 30, 2**24])
def test_equals_scoring_each_concatenation(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "CPU_BLOCK", budget)
    blocks, labels = _pack()
    subsets = _all_subsets(4)
    found = pack_curve(blocks, labels, subsets)
    assert list(found) == subsets
    for subset in subsets:
        whole = np.concatenate([blocks[member] for member in subset], 1)
        assert found[subset] == pytest.approx(score(whole, labels, nmi=False).metrics(), abs=1e-12), subset


def test_singletons_as_misses() -> None:
    blocks, labels = _pack(1)
    labels[0] = 99
    found = pack_curve(blocks, labels, [(0, 1)], singletons="miss")[0, 1]
    expected = score(np.concatenate(blocks[:2], 1), labels, nmi=False, singletons="miss").metrics()
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("subset", [(), (1, 0), (0, 0), (0, 4), (-1,)])
def test_bad_subsets(subset: tuple[int, ...]) -> None:
    blocks, labels = _pack()
    with pytest.raises(DataError, match=r"must name members 0\.\.3"):
        pack_curve(blocks, labels, [subset])


def test_members_of_other_rows() -> None:
    blocks, labels = _pack()
    with pytest.raises(DataError, match="same rows"):
        pack_curve([blocks[0], blocks[1][:5]], labels, [(0,)])
