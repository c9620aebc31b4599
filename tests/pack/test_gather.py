import dataclasses

import numpy as np
import pytest

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.errors import SforaError
from sfora_ray.pack.gather import join
from tests.pack.blocks import members, table

SPECS = members(3)


def tables() -> list[EmbeddingTable]:
    return [table(member, "test") for member in range(3)]


def refused(given: list[EmbeddingTable]) -> str:
    with pytest.raises(SforaError) as caught:
        join(SPECS, given, "test")
    assert caught.value.exit_code == 1
    return str(caught.value)


def test_blocks_stand_side_by_side() -> None:
    given = tables()
    split = join(SPECS, given, "test")
    assert np.array_equal(split.ids, given[0].ids)
    assert np.array_equal(split.labels, given[2].labels)
    assert all(np.array_equal(block, one.embeddings) for block, one in zip(split.blocks, given, strict=True))


def test_other_images_are_refused() -> None:
    given = tables()
    given[1] = dataclasses.replace(given[1], ids=given[1].ids[::-1])
    assert "test embeddings of m01-seed1: the images differ from those of m00-seed0" in refused(given)


def test_fewer_images_are_refused_with_both_numbers() -> None:
    given = tables()
    given[2] = EmbeddingTable(given[2].ids[:-3], given[2].labels[:-3], given[2].embeddings[:-3])
    assert "got 27 against 30 rows" in refused(given)


def test_other_labels_are_refused() -> None:
    given = tables()
    given[2] = dataclasses.replace(given[2], labels=given[2].labels + 1)
    assert "test embeddings of m02-seed2: the labels differ from those of m00-seed0" in refused(given)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("member", [0, 2])
def test_a_row_that_is_not_finite_is_refused_with_member_row_and_image(member: int, value: float) -> None:
    given = tables()
    rows = given[member].embeddings.copy()
    rows[7, 1] = value
    given[member] = dataclasses.replace(given[member], embeddings=rows)
    said = refused(given)
    assert f"m{member:02d}-seed{member}: row 7 (image test/7.png) is not finite, as are 1 in all" in said


def test_a_row_of_zeros_is_defined() -> None:
    given = tables()
    given[0].embeddings[4] = 0
    assert not join(SPECS, given, "test").blocks[0][4].any()


def test_coarse_labels_come_along_and_must_agree() -> None:
    given = [dataclasses.replace(one, coarse_labels=one.labels // 2) for one in tables()]
    joined = join(SPECS, given, "test").coarse_labels
    assert joined is not None
    assert np.array_equal(joined, given[0].labels // 2)
    for other in (None, given[1].labels // 3):
        changed = [given[0], dataclasses.replace(given[1], coarse_labels=other), given[2]]
        assert "test embeddings of m01-seed1: the coarse labels differ from those of m00-seed0" in refused(changed)
