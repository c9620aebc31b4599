import numpy as np
import pytest

from sfora_ray.folds.algebra import nearest_rotation, polar_rotation, top_axes
from tests.folds.packs import orthogonal


@pytest.mark.parametrize("smallest", [1.0, 1e-2, 3e-4, 1e-6, 0.0])
def test_both_ways_to_the_nearest_rotation(smallest: float) -> None:
    rng = np.random.default_rng(0)
    left, right = orthogonal(rng, 9), orthogonal(rng, 9)
    products = left @ np.diag([*np.geomspace(1, 0.5, 8).tolist(), smallest]) @ right
    found = polar_rotation(products)
    np.testing.assert_allclose(found @ found.T, np.eye(9), atol=1e-12)
    np.testing.assert_allclose(found, nearest_rotation(products), atol=1e-8)
    if smallest:
        np.testing.assert_allclose(found, left @ right, atol=1e-8)


def test_axes_end_at_the_rank_and_have_a_fixed_sign() -> None:
    rows = np.random.default_rng(1).normal(size=(3, 7))
    axes = top_axes(rows.T @ rows, 5)
    assert axes.shape == (7, 3)
    np.testing.assert_allclose(np.abs(axes.T @ np.linalg.svd(rows)[2][:3].T), np.eye(3), atol=1e-9)
    assert np.all(axes.max(0) == np.abs(axes).max(0))
