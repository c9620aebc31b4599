import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfora_ray.errors import DataError
from sfora_ray.samplers import ExhaustiveOptions
from tests.samplers.labels import epoch_of, labels_of


def check_unused(labels: list[int], batches: list[list[int]], each: int) -> int:
    """Keep each class's unused images in a set; return how often one was filled anew."""
    whole = {label: {row for row, other in enumerate(labels) if other == label} for label in set(labels)}
    unused = {label: set(rows) for label, rows in whole.items()}
    refills = 0
    for batch, start in itertools.product(batches, range(0, len(batches[0]), each)):
        visit = batch[start : start + each]
        label = labels[visit[0]]
        if len(unused[label]) < each:
            unused[label] = set(whole[label])
            refills += 1
        assert len(set(visit)) == each
        assert set(visit) <= unused[label]
        unused[label] -= set(visit)
    return refills


@given(st.lists(st.integers(3, 11), min_size=3, max_size=8), st.integers(1, 3), st.integers(0, 4))
def test_no_image_of_a_class_comes_again_before_the_class_is_used_up(counts: list[int], each: int, epoch: int) -> None:
    labels = labels_of(*counts)
    sampler = ExhaustiveOptions(batch_size=3 * each, samples_per_class=each).build(labels, seed=3)
    # More visits than all classes have room for.
    num_steps = 2 * len(labels) // (3 * each) + 1
    batches = [sampler.batch(epoch, step).tolist() for step in range(num_steps)]
    assert check_unused(labels.tolist(), batches, each) >= 1


@pytest.mark.parametrize("num_classes", [6, 7, 8])
def test_no_class_comes_twice_in_a_block_of_whole_batches(num_classes: int) -> None:
    labels = labels_of(*[9] * num_classes)
    sampler = ExhaustiveOptions(batch_size=6, samples_per_class=3).build(labels, seed=0)
    per_block = num_classes // 2
    for block in range(5):
        batches = [labels[sampler.batch(1, block * per_block + place)] for place in range(per_block)]
        counts = np.bincount(np.concatenate(batches), minlength=num_classes)
        assert sorted(set(counts.tolist())) == ([0, 3] if num_classes % 2 else [3])


def test_classes_and_their_images_are_drawn_equally_often() -> None:
    labels = labels_of(5, 6, 6, 6, 6)
    sampler = ExhaustiveOptions(batch_size=4, samples_per_class=2).build(labels, seed=0)
    counts = np.zeros(len(labels))
    for epoch in range(100):
        for step in range(20):
            counts[sampler.batch(epoch, step)] += 1
    by_class = np.bincount(labels, weights=counts)
    # Four of five classes in each of 10 blocks, two images each: 1600 a class, with deviation 2 * sqrt(1000 * .16).
    assert (np.abs(by_class - 1600) < 5 * 2 * np.sqrt(160)).all()
    assert (np.abs(counts - 1600 / np.bincount(labels)[labels]) < 60).all()


def test_epochs_begin_with_all_images_unused_and_differ() -> None:
    labels = labels_of(4, 4)
    sampler = ExhaustiveOptions(batch_size=4, samples_per_class=2).build(labels, seed=0)
    epochs = [epoch_of(sampler, epoch) for epoch in range(8)]
    assert all(sorted(np.concatenate(batches).tolist()) == list(range(8)) for batches in epochs)
    assert len({np.concatenate(batches).tobytes() for batches in epochs}) > 4


@pytest.mark.parametrize(
    ("num_images", "num_classes", "batch_size", "steps", "block"), [(5864, 100, 128, 45, 96), (8054, 98, 64, 125, 96)]
)
def test_blocks_and_epochs_of_the_published_settings(
    num_images: int, num_classes: int, batch_size: int, steps: int, block: int
) -> None:
    labels = np.arange(num_images) % num_classes
    sampler = ExhaustiveOptions(batch_size=batch_size).build(labels, seed=0)
    assert sampler.steps_per_epoch == steps
    batches = [labels[sampler.batch(1, step)] for step in range(block * 4 // batch_size + 1)]
    assert len(np.unique(np.concatenate(batches[:-1]))) == block
    assert set(batches[-1]) & set(np.concatenate(batches[:-1]))


def test_images_of_small_classes_are_repeated_only_where_asked() -> None:
    labels = labels_of(2, 3, 7)
    sampler = ExhaustiveOptions(batch_size=9, samples_per_class=3, small_classes="upsample").build(labels, seed=0)
    for step in range(12):
        rows = sampler.batch(1, step)
        assert sorted(np.bincount(rows)[np.bincount(rows) > 0]) == [1] * 7 + [2]
    with pytest.raises(DataError, match=r"per_class_exhaustive: 3 classes .* got 2 of 3\. Set batch_size to 6"):
        ExhaustiveOptions(batch_size=9, samples_per_class=3).build(labels, seed=0)
