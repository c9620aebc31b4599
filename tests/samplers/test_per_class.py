import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfora_ray.errors import DataError
from sfora_ray.samplers import PerClassOptions
from tests.samplers.labels import labels_of


@given(
    st.lists(st.integers(1, 9), min_size=4, max_size=12),
    st.integers(1, 4),
    st.integers(0, 5),
    st.integers(0, 99),
)
def test_per_class_batch_is_balanced_sorted_and_without_repeats(
    counts: list[int], each: int, epoch: int, step: int
) -> None:
    labels = labels_of(*counts, 9, 9)
    sampler = PerClassOptions(batch_size=2 * each, samples_per_class=each).build(labels, seed=1)
    rows = sampler.batch(epoch, step)
    drawn = labels[rows]
    assert len(set(rows.tolist())) == 2 * each
    assert (np.diff(drawn) >= 0).all()
    assert np.unique(drawn, return_counts=True)[1].tolist() == [each, each]
    np.testing.assert_array_equal(rows, sampler.batch(epoch, step))


def test_draws_differ_by_step_epoch_and_seed() -> None:
    labels = labels_of(*[20] * 30)
    options = PerClassOptions(batch_size=40, samples_per_class=4)
    first, other = options.build(labels, seed=1), options.build(labels, seed=2)
    batches = [first.batch(0, 0), first.batch(0, 1), first.batch(1, 0), other.batch(0, 0)]
    assert len({tuple(rows.tolist()) for rows in batches}) == 4


def test_every_class_and_image_is_drawn_equally_often() -> None:
    labels = labels_of(4, 8, 8, 8)
    sampler = PerClassOptions(batch_size=8, samples_per_class=4).build(labels, seed=0)
    counts = np.bincount(np.concatenate([sampler.batch(0, step) for step in range(2000)]), minlength=28)
    # A class is in half of the batches; an image of it in 4 / size of those.
    expected = np.where(labels == 0, 1000, 500)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize(("num_images", "steps"), [(5864, 49), (8054, 68), (59551, 497)])
def test_epoch_length_is_that_of_the_protocol(num_images: int, steps: int) -> None:
    labels = np.arange(num_images) % 100
    assert PerClassOptions().build(labels, seed=0).steps_per_epoch == steps


def test_small_classes_are_left_out_and_counted() -> None:
    labels = labels_of(*[10] * 7, *[2] * 5)
    sampler = PerClassOptions(batch_size=20, samples_per_class=4).build(labels, seed=0)
    assert sampler.notes == ("5 classes, 10 images left out (fewer than 4 images a class); 7 classes are drawn",)
    assert sampler.steps_per_epoch == 4  # 80 images, the small classes' among them
    drawn = {int(label) for step in range(50) for label in labels[sampler.batch(0, step)]}
    assert drawn == set(range(7))


def test_small_classes_can_be_upsampled() -> None:
    labels = labels_of(2, 3)
    options = PerClassOptions(batch_size=10, samples_per_class=5, small_classes="upsample")
    sampler = options.build(labels, seed=0)
    rows = sampler.batch(0, 0)
    counts = np.bincount(rows, minlength=5)
    assert sorted(counts[labels == 0]) == [2, 3]
    assert sorted(counts[labels == 1]) == [1, 2, 2]
    assert "2 classes, 5 images upsampled" in sampler.notes[0]


@pytest.mark.parametrize(
    ("batch_size", "each", "counts", "words"),
    [
        (64, 30, [40] * 4, ["64", "30", "Set batch_size to 60"]),
        (240, 4, [30] * 8, ["batch_size 240", "samples_per_class 4", "got 8 of 8", "Set batch_size to 32"]),
        (16, 4, [2] * 12, ["got 0 of 12", "samples_per_class to 2 and batch_size to 24", "upsample"]),
        (8, 4, [], ["got 0 of 0"]),
    ],
)
def test_impossible_batches_are_one_error_with_a_setting_that_fits(
    batch_size: int, each: int, counts: list[int], words: list[str]
) -> None:
    with pytest.raises(DataError) as caught:
        PerClassOptions(batch_size=batch_size, samples_per_class=each).build(labels_of(*counts), seed=0)
    for word in words:
        assert word in str(caught.value)


def test_the_settings_that_messages_propose_do_fit() -> None:
    PerClassOptions(batch_size=60, samples_per_class=30).build(labels_of(*[40] * 4), seed=0)
    PerClassOptions(batch_size=32, samples_per_class=4).build(labels_of(*[30] * 8), seed=0)
    PerClassOptions(batch_size=24, samples_per_class=2).build(labels_of(*[2] * 12), seed=0)
