import numpy as np
import pytest

from sfora_ray.errors import DataError
from sfora_ray.folds import Moments
from tests.folds.packs import pack


def _assert_equal(first: Moments, second: Moments) -> None:
    for field in ("gram", "total", "classes", "class_sums", "class_counts"):
        np.testing.assert_allclose(getattr(first, field), getattr(second, field), rtol=1e-12, atol=1e-12)
    assert (first.num_rows, first.num_members, first.dim) == (second.num_rows, second.num_members, second.dim)


def test_sums_are_those_of_a_loop() -> None:
    blocks, labels = pack()
    found = Moments.of([3 * block for block in blocks], labels)
    rows = np.concatenate(blocks, 1)
    np.testing.assert_allclose(found.gram, sum(np.outer(row, row) for row in rows), atol=1e-12)
    np.testing.assert_allclose(found.mean, rows.mean(0), atol=1e-14)
    scatter = np.zeros((32, 32))
    for number, label in enumerate(found.classes):
        chosen = rows[labels == label]
        assert found.class_counts[number] == len(chosen)
        np.testing.assert_allclose(found.class_sums[number], chosen.sum(0), atol=1e-12)
        scatter += (chosen - chosen.mean(0)).T @ (chosen - chosen.mean(0))
    np.testing.assert_allclose(found.within_class_scatter(), scatter, atol=1e-11)


@pytest.mark.parametrize("chunk_rows", [1, 7, 149, 1000])
def test_chunks_do_not_matter(chunk_rows: int) -> None:
    blocks, labels = pack()
    _assert_equal(Moments.of(blocks, labels), Moments.of(blocks, labels, chunk_rows))


@pytest.mark.parametrize("cut", [1, 60, 149])
def test_parts_add_up_also_when_they_hold_other_classes(cut: int) -> None:
    blocks, labels = pack()
    order = np.argsort(labels, kind="stable")
    blocks, labels = [block[order] for block in blocks], labels[order]
    parts = [Moments.of([block[s] for block in blocks], labels[s]) for s in (slice(cut), slice(cut, None))]
    _assert_equal(parts[0] + parts[1], Moments.of(blocks, labels))


def test_some_members_only() -> None:
    blocks, labels = pack()
    _assert_equal(Moments.of(blocks, labels).members([2, 0]), Moments.of([blocks[2], blocks[0]], labels))


@pytest.mark.parametrize("centred", [False, True])
def test_pushed_through_a_map(centred: bool) -> None:
    blocks, labels = pack()
    matrix = np.random.default_rng(5).normal(size=(32, 6))
    moments = Moments.of(blocks, labels)
    mean = 0.7 * moments.mean
    mapped = (np.concatenate(blocks, 1) - centred * mean) @ matrix
    found = moments.through(matrix, mean if centred else None)
    np.testing.assert_allclose(found.gram, mapped.T @ mapped, atol=1e-10)
    np.testing.assert_allclose(found.total, mapped.sum(0), atol=1e-10)
    np.testing.assert_allclose(
        found.class_sums, [mapped[labels == label].sum(0) for label in found.classes], atol=1e-10
    )
    assert (found.num_members, found.dim) == (1, 6)


def test_float32_rows_are_summed_in_float64() -> None:
    blocks, labels = pack(rows=3000)
    exact = Moments.of(blocks, labels)
    found = Moments.of([block.astype(np.float32) for block in blocks], labels, chunk_rows=100)
    assert found.gram.dtype == np.float64
    np.testing.assert_allclose(found.gram, exact.gram, rtol=1e-5, atol=1e-4)


def test_bad_blocks() -> None:
    blocks, labels = pack()
    with pytest.raises(DataError, match="one shape"):
        Moments.of([blocks[0], blocks[1][:, :3]], labels)
    with pytest.raises(DataError, match="one shape"):
        Moments.of(blocks, labels[:-1])
    with pytest.raises(DataError, match="one shape"):
        Moments.of([], labels)
    with pytest.raises(DataError, match="only blocks of equal shape add up"):
        Moments.of(blocks, labels) + Moments.of(blocks[:2], labels)
    with pytest.raises(DataError, match="members must be among"):
        Moments.of(blocks, labels).members([4])
    blocks[1][3, 2] = np.nan
    with pytest.raises(DataError, match="must be finite, got NaN or infinity in 1 rows"):
        Moments.of(blocks, labels)
