import numpy as np
import pytest
from pydantic import ValidationError

from sfora_ray.arrays import Float32, Int64, l2_normalize
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers import NPairsSamplerOptions
from tests.samplers.labels import epoch_of, labels_of

LABELS = labels_of(5, 2, 9, 3, 1, 4, 6, 2)


def confused(labels: Int64, groups: list[set[int]]) -> Float32:
    """Return one direction for all images of the classes of a group, another for each group."""
    group = np.array([next(i for i, members in enumerate(groups) if label in members) for label in labels])
    rows = np.eye(len(groups))[group] + 0.01 * numpy_generator(0, "noise").normal(size=(len(labels), len(groups)))
    return l2_normalize(rows.astype(np.float32))


def test_it_asks_for_examples_of_each_class_that_has_pairs_and_for_others_each_epoch() -> None:
    sampler = NPairsSamplerOptions(batch_size=4, examples_per_class=3).build(LABELS, seed=1)
    asked = [sampler.wants(epoch) for epoch in range(6)]
    for rows in asked:
        assert len(set(rows.tolist())) == len(rows)
        assert np.bincount(LABELS[rows], minlength=8).tolist() == [3, 2, 3, 3, 0, 3, 3, 2]
    assert len({rows.tobytes() for rows in asked}) == 6
    np.testing.assert_array_equal(asked[2], sampler.wants(2))


def test_a_batch_is_pairs_of_classes_that_are_confused() -> None:
    groups = [{0, 3}, {1, 7}, {2, 5, 6}]
    sampler = NPairsSamplerOptions(batch_size=4, candidates=7).build(LABELS, seed=1)
    rows = sampler.wants(1)
    batches = epoch_of(sampler.informed(1, confused(LABELS[rows], groups)), 1)
    batches += [sampler.informed(1, confused(LABELS[rows], groups)).batch(1, step) for step in range(40)]
    for batch in batches:
        assert len(set(batch.tolist())) == 4
        labels = LABELS[batch].reshape(2, 2)
        assert (labels[:, 0] == labels[:, 1]).all()
        assert any(set(labels[:, 0].tolist()) <= members for members in groups)
        assert labels[0, 0] != labels[1, 0]


def test_pairs_are_new_draws_from_the_whole_data_set() -> None:
    sampler = NPairsSamplerOptions(batch_size=14).build(LABELS, seed=1)
    rows = sampler.wants(1)
    informed = sampler.informed(1, confused(LABELS[rows], [set(range(8))]))
    drawn = np.concatenate([informed.batch(1, step) for step in range(300)])
    counts = np.bincount(drawn, minlength=len(LABELS))
    expected = np.where(LABELS == 4, 0, 600 / np.bincount(LABELS)[LABELS])
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


def test_only_candidates_are_chosen_and_few_of_them_leave_little_choice() -> None:
    labels = labels_of(*[4] * 30)
    twin = np.arange(30) // 2
    embeddings = {}
    for candidates in (2, 30):
        sampler = NPairsSamplerOptions(batch_size=4, candidates=candidates).build(labels, seed=1)
        rows = sampler.wants(1)
        informed = sampler.informed(1, confused(labels[rows], [{2 * i, 2 * i + 1} for i in range(15)]))
        pairs = np.array([twin[labels[informed.batch(1, step)]] for step in range(60)])
        embeddings[candidates] = int((pairs[:, 0] == pairs[:, 2]).sum())
    assert embeddings[30] == 60  # twins find each other among all
    assert embeddings[2] < 12  # two random classes are twins once in 29


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 16}, ["8 pairs a batch", "got 7 of 8", "Set batch_size to 14 or less."]),
        ({"batch_size": 16, "candidates": 9}, ["Set batch_size to 14 and candidates to 7 or less."]),
        ({"batch_size": 4, "candidates": 8}, ["8 classes of two", "got 7 of 8", "Set candidates to 7 or less."]),
    ],
)
def test_too_few_classes_are_one_error_with_a_setting_that_fits(options: dict[str, int], words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        NPairsSamplerOptions.model_validate(options).build(LABELS, seed=0)
    for word in words:
        assert word in str(caught.value)


def test_more_examples_than_can_be_compared_are_refused_with_a_setting_that_fits() -> None:
    labels = labels_of(*[3] * 4000)
    options = {"batch_size": 8, "candidates": 3000, "examples_per_class": 3}
    with pytest.raises(DataError, match=r"3000 candidates of 3 examples\. Set candidates to 2730 or less"):
        NPairsSamplerOptions.model_validate(options).build(labels, seed=0)
    NPairsSamplerOptions.model_validate({**options, "candidates": 2730}).build(labels, seed=0)


def test_the_settings_that_messages_propose_do_fit() -> None:
    NPairsSamplerOptions(batch_size=14).build(LABELS, seed=0)
    NPairsSamplerOptions(batch_size=14, candidates=7).build(LABELS, seed=0)
    NPairsSamplerOptions(batch_size=4, candidates=7).build(LABELS, seed=0)


def test_classes_of_one_image_are_told_and_alone_are_refused() -> None:
    assert NPairsSamplerOptions(batch_size=4).build(LABELS, seed=0).notes == (
        "1 classes of a single image are never drawn",
    )
    with pytest.raises(DataError, match=r"got 0 of 9\. Use the sampler 'random'"):
        NPairsSamplerOptions(batch_size=4).build(np.arange(9), seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"batch_size": 5}, "must be even"), ({"batch_size": 8, "candidates": 3}, r"pairs of a batch \(4.* got 3")],
)
def test_options_that_never_fit_are_refused_at_load(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        NPairsSamplerOptions.model_validate(options)
