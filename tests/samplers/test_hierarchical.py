import math
from collections import Counter

import numpy as np
import pytest
from pydantic import ValidationError

from sfora_ray.arrays import Int64
from sfora_ray.errors import DataError
from sfora_ray.samplers import HierarchicalOptions
from tests.samplers.labels import epoch_of, labels_of


def coarse_of(labels: Int64, *sizes: int) -> Int64:
    """Return the coarse class of each row: the first ``sizes[0]`` classes are of coarse class 0, and so on."""
    of_class = np.repeat(np.arange(len(sizes)), sizes)
    return of_class[labels].astype(np.int64)


LABELS = labels_of(3, 9, 2, 5, 5, 8, 4, 4, 1, 7, 6, 6, 6)
COARSE = coarse_of(LABELS, 2, 3, 4, 4)
OPTIONS = HierarchicalOptions(batch_size=12, samples_per_class=3, batches_per_tuple=5)


def test_a_batch_has_equal_parts_of_two_coarse_classes() -> None:
    sampler = OPTIONS.build(LABELS, coarse=COARSE, seed=1)
    for rows in epoch_of(sampler):
        labels = LABELS[rows].reshape(4, 3)
        assert (labels == labels[:, :1]).all()
        assert len(set(labels[:, 0].tolist())) == 4
        assert sorted(Counter(COARSE[rows].tolist()).values()) == [6, 6]
        for chosen in rows.reshape(4, 3):
            size = int((LABELS[chosen[0]] == LABELS).sum())
            assert len(set(chosen.tolist())) == min(size, 3)


@pytest.mark.parametrize("together", [2, 3])
def test_every_combination_comes_equally_often_in_an_epoch_and_in_another_order(together: int) -> None:
    options = HierarchicalOptions(
        batch_size=6 * together, samples_per_class=3, super_classes=together, batches_per_tuple=5
    )
    sampler = options.build(LABELS, coarse=COARSE, seed=1)
    orders = [[tuple(sorted(set(COARSE[rows].tolist()))) for rows in epoch_of(sampler, epoch)] for epoch in (1, 2)]
    for order in orders:
        assert list(Counter(order).values()) == [5] * math.comb(4, together)
    assert orders[0] != orders[1]


def test_classes_of_a_coarse_class_and_images_of_a_class_are_drawn_equally_often() -> None:
    sampler = OPTIONS.build(LABELS, coarse=COARSE, seed=1)
    rows = np.concatenate([batch for epoch in range(40) for batch in epoch_of(sampler, epoch)])
    by_class = np.bincount(LABELS[rows]) / 3
    for group, size in enumerate((2, 3, 4, 4)):
        classes = np.unique(LABELS[group == COARSE])
        expected = 40 * 15 * 2 / size  # 15 of the 30 batches of an epoch have this coarse class, and 2 classes of it
        assert (np.abs(by_class[classes] - expected) < 5 * np.sqrt(expected)).all()
    by_image = np.bincount(rows, minlength=len(LABELS))
    expected_images = by_class[LABELS] * 3 / np.bincount(LABELS)[LABELS]
    assert (np.abs(by_image - expected_images) < 5 * np.sqrt(expected_images) + 1).all()


def test_by_images_draws_coarse_classes_by_their_size() -> None:
    options = HierarchicalOptions(batch_size=12, samples_per_class=3, draw="by_images")
    sampler = options.build(LABELS, coarse=COARSE, seed=1)
    num_batches = 2000
    drawn = [np.unique(COARSE[sampler.batch(1, step)]) for step in range(num_batches)]
    assert all(len(groups) == 2 for groups in drawn)
    shares = np.bincount(COARSE) / len(COARSE)
    # First, or second after another: p_i + sum_j p_j p_i / (1 - p_j).
    expected = [
        share + sum(other * share / (1 - other) for j, other in enumerate(shares) if j != i)
        for i, share in enumerate(shares)
    ]
    np.testing.assert_allclose(np.bincount(np.concatenate(drawn)) / num_batches, expected, atol=0.04)


def test_an_epoch_of_the_published_setting_has_84480_images() -> None:
    labels = np.arange(12 * 40).repeat(4)
    sampler = HierarchicalOptions(batch_size=128).build(labels, coarse=labels // 40, seed=0)
    assert sampler.steps_per_epoch * 128 == 84480


def test_coarse_classes_that_are_too_small_are_left_out_and_told() -> None:
    options = HierarchicalOptions(batch_size=18, samples_per_class=3)
    sampler = options.build(LABELS, coarse=COARSE, seed=1)
    assert sampler.steps_per_epoch == math.comb(3, 2) * 10
    assert {group for rows in epoch_of(sampler) for group in COARSE[rows].tolist()} == {1, 2, 3}
    assert sampler.notes == (
        "1 coarse classes with fewer than 3 classes left out",
        "2 classes, 3 images upsampled (fewer than 3 images a class)",
        "an epoch draws 540 images, 8.2 times the 66 there are: 3 combinations of coarse classes, batches_per_tuple 10",
    )


@pytest.mark.parametrize(("batches_per_tuple", "told"), [(1, False), (3, False), (4, True)])
def test_an_epoch_of_more_than_four_times_the_images_is_told(batches_per_tuple: int, told: bool) -> None:
    """A round of the 6 combinations draws 72 images; there are 66, and 264 is the limit."""
    options = HierarchicalOptions(batch_size=12, samples_per_class=3, batches_per_tuple=batches_per_tuple)
    notes = options.build(LABELS, coarse=COARSE, seed=1).notes
    assert any("an epoch draws" in note for note in notes) is told


@pytest.mark.parametrize(
    ("options", "sizes", "words"),
    [
        ({"batch_size": 100}, (2, 3, 4, 4), ["(8), got 100", "Set batch_size to 96."]),
        ({"batch_size": 64}, (2, 3, 4, 4), ["2 coarse classes of 8 or more", "got 0 of 4", "Set batch_size to 32 or"]),
        (
            {"batch_size": 60, "super_classes": 5},
            (2, 3, 4, 4),
            ["got 3 of 4", "Set super_classes to 4 and batch_size to 32 or"],
        ),
        ({"batch_size": 8}, (13,), ["got 1 of 1", "Use the sampler 'per_class'"]),
    ],
)
def test_impossible_batches_are_one_error_with_a_setting_that_fits(
    options: dict[str, int], sizes: tuple[int, ...], words: list[str]
) -> None:
    with pytest.raises(DataError) as caught:
        HierarchicalOptions.model_validate(options).build(LABELS, coarse=coarse_of(LABELS, *sizes), seed=0)
    for word in words:
        assert word in str(caught.value)


def test_the_settings_that_messages_propose_do_fit() -> None:
    HierarchicalOptions(batch_size=32).build(LABELS, coarse=COARSE, seed=0)
    HierarchicalOptions(batch_size=32, super_classes=4).build(LABELS, coarse=COARSE, seed=0)


def test_a_data_set_without_coarse_classes_is_refused() -> None:
    with pytest.raises(DataError, match="must have coarse classes, got none"):
        OPTIONS.build(LABELS, seed=0)


def test_one_coarse_class_is_no_hierarchy() -> None:
    with pytest.raises(ValidationError, match="super_classes"):
        HierarchicalOptions(super_classes=1)
