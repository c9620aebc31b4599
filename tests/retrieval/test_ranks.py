import numpy as np
import pytest
import torch

from sfora_ray.retrieval import similarity
from sfora_ray.retrieval.positives import PositiveIndex
from sfora_ray.retrieval.ranks import Method, choose_method, positive_ranks
from sfora_ray.retrieval.rows import Duplicates
from sfora_ray.retrieval.scores import score

METHODS: tuple[Method, ...] = ("count", "search", "slots", "sort")


@pytest.mark.parametrize("seed", range(5))
def test_all_ways_give_the_same_ranks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 6, 50)
    rows = np.flatnonzero(np.bincount(labels, minlength=6)[labels] > 1)
    # Few distinct values, so that most comparisons are ties.
    similarities = torch.from_numpy(rng.integers(-3, 4, (50, 50)).astype(np.float32))[rows]
    similarity.hide_self(similarities, rows)
    positives = PositiveIndex(labels).of(labels[rows], rows)
    found = [positive_ranks(similarities, positives, method) for method in METHODS]
    assert all(ranks.tolist() == found[0].tolist() for ranks in found)
    first = int(np.flatnonzero(positives.owners == 0)[0])
    order = sorted(range(50), key=lambda column: (-similarities[0, column].item(), column))
    own = int(rows[0])
    partners = [1 + order.index(row) for row in range(50) if row != own and labels[row] == labels[own]]
    assert found[0][first : first + positives.counts[0]].tolist() == sorted(partners)


@pytest.mark.parametrize(
    ("rows", "positives", "device", "method"),
    [
        (60_000, 4, "cpu", "count"),
        (300, 250, "cpu", "search"),
        (60_000, 4, "cuda", "slots"),
        (300, 250, "cuda", "sort"),
    ],
)
def test_choice(rows: int, positives: float, device: str, method: str) -> None:
    assert choose_method(rows, positives, device) == method


def test_scores_do_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(90, 12)), rng.integers(0, 9, 90)
    rows[40] = rows[3]
    whole = score(rows, labels, nmi=False).metrics()
    for budget in (1, 90 * 7, 90 * 64):
        monkeypatch.setattr(similarity, "CPU_BLOCK", budget)
        assert score(rows, labels, nmi=False).metrics() == whole


def test_duplicates_are_found_bit_by_bit() -> None:
    rows = np.random.default_rng(1).normal(size=(30, 5)).astype(np.float32)
    rows[[7, 20]] = rows[2]
    rows[11] = rows[4]
    rows[12, :3] = rows[4, :3]
    found = Duplicates.of(rows)
    assert dict(zip(found.copies.tolist(), found.originals.tolist(), strict=True)) == {7: 2, 20: 2, 11: 4}


def test_equal_rows_tie_wherever_they_stand_in_the_product() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(101, 37)).astype(np.float32)
    rows[100] = rows[0]
    gallery = similarity.Gallery(rows, "cpu")
    block = gallery.similarities(gallery.rows[:5], torch.empty(5, 101))
    assert torch.equal(block[:, 0], block[:, 100])


def test_reduced_precision_products_are_switched_off_and_on_again() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with similarity.full_precision():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
