from dataclasses import fields

import numpy as np
import pytest

from sfora_ray.arrays import l2_normalize
from sfora_ray.cluster.gather import sum_moments
from sfora_ray.folds import Moments
from sfora_ray.folds.moments import CHUNK_ROWS
from sfora_ray.pack.gather import SplitBlocks

pytestmark = pytest.mark.ray


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("rows", [5, CHUNK_ROWS, 2 * CHUNK_ROWS + 3])
def test_sums_on_the_cluster_have_the_bits_of_sums_in_one_process(rows: int) -> None:
    generator = np.random.default_rng(rows)
    blocks = tuple(l2_normalize(generator.normal(size=(rows, 6)).astype(np.float32)) for _ in range(2))
    labels = np.sort(generator.integers(0, 40, rows))
    ids = np.array([str(row) for row in range(rows)])
    there = sum_moments(SplitBlocks(ids, labels, blocks))
    here = Moments.of(blocks, labels)
    for field in fields(Moments):
        assert np.array_equal(getattr(there, field.name), getattr(here, field.name)), field.name
