import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfora_ray.errors import DataError
from sfora_ray.samplers import RandomOptions


@given(st.integers(2, 60), st.integers(2, 9), st.integers(0, 4))
def test_random_epoch_shows_no_image_twice_and_no_rest(num_images: int, batch_size: int, epoch: int) -> None:
    options = RandomOptions(batch_size=batch_size)
    labels = np.zeros(num_images, dtype=np.int64)
    if num_images < batch_size:
        with pytest.raises(DataError, match=f"{num_images} images. Set batch_size to {num_images}"):
            options.build(labels, seed=0)
        return
    sampler = options.build(labels, seed=0)
    batches = [sampler.batch(epoch, step) for step in range(sampler.steps_per_epoch)]
    assert all(len(rows) == batch_size for rows in batches)
    shown = np.concatenate(batches).tolist()
    assert len(set(shown)) == len(shown) > num_images - batch_size


def test_random_orders_differ_by_epoch_and_rest_is_told() -> None:
    sampler = RandomOptions(batch_size=10).build(np.zeros(23, dtype=np.int64), seed=0)
    assert sampler.batch(0, 0).tolist() != sampler.batch(1, 0).tolist()
    assert sampler.notes == ("3 images, others each epoch, fill no batch and are dropped",)
