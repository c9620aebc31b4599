from collections import Counter
from itertools import chain

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_weights

from sfora_ray.arrays import Float32, l2_normalize
from sfora_ray.errors import DataError
from sfora_ray.mining import BatchHardOptions, MinerOptions, MultiSimilarityMinerOptions, PairMarginMinerOptions
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers import MiningWeightedOptions
from sfora_ray.samplers.mining_weighted import MiningWeightedSampler, occurrence_weights
from sfora_ray.tuples import Pairs, Triplets
from tests.samplers.labels import labels_of

LABELS = labels_of(5, 2, 9, 3, 1, 4, 6, 2)


def random_rows(number: int) -> Float32:
    return l2_normalize(numpy_generator(0, "rows").normal(size=(number, 3)).astype(np.float32))


def sampler_of(subset: int = 20, miner: MinerOptions | None = None, batch_size: int = 8) -> MiningWeightedSampler:
    miner = miner or MultiSimilarityMinerOptions()
    options = MiningWeightedOptions(batch_size=batch_size, subset=subset, miner=miner)
    return options.build(LABELS, seed=3)


def positions(*rows: int) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.int64)


def test_a_hand_example_of_pairs_and_of_triplets() -> None:
    pairs = Pairs(positions(0, 0), positions(1, 2), positions(0, 4), positions(4, 0))
    np.testing.assert_array_equal(occurrence_weights(pairs, 6), [1, 0.25, 0.25, 0, 0.5, 0])
    triplets = Triplets(positions(0, 3), positions(3, 0), positions(1, 1))
    np.testing.assert_array_equal(occurrence_weights(triplets, 5), [1, 1, 0, 1, 0])


def test_nothing_mined_weighs_all_the_same() -> None:
    empty = positions()
    np.testing.assert_array_equal(occurrence_weights(Triplets(empty, empty, empty), 4), np.ones(4))


@pytest.mark.parametrize("miner", [MultiSimilarityMinerOptions(), PairMarginMinerOptions(), BatchHardOptions()])
def test_weights_are_the_librarys_and_a_slow_count_in_the_subset_and_nothing_outside(miner: MinerOptions) -> None:
    sampler = sampler_of(miner=miner)
    rows = sampler.wants(2)
    weights = sampler.informed(2, random_rows(20)).weights
    assert weights is not None
    labels = torch.from_numpy(LABELS[rows])
    tuples = tuple(vars(miner.build()(torch.from_numpy(random_rows(20)), labels)).values())
    expected = convert_to_weights(tuples, labels, torch.float64).numpy()
    np.testing.assert_allclose(weights[rows], expected, rtol=1e-12)
    counts = Counter(chain.from_iterable(part.tolist() for part in tuples))
    assert [weights[row] for row in rows] == [counts[place] / max(counts.values()) for place in range(20)]
    assert not np.delete(weights, rows).any()
    assert np.count_nonzero(weights) > 0


@pytest.mark.parametrize("subset", [9, 20, 32, 500])
def test_the_subset_is_unique_rows_drawn_anew_for_each_epoch(subset: int) -> None:
    sampler = sampler_of(subset)
    asked = [sampler.wants(epoch) for epoch in range(5)]
    for rows in asked:
        assert len(set(rows.tolist())) == len(rows) == min(subset, 32)
    assert len({rows.tobytes() for rows in asked}) == 5
    np.testing.assert_array_equal(asked[1], sampler.wants(1))


def test_classes_are_whole_but_one() -> None:
    labels, options = labels_of(*[5] * 40), MiningWeightedOptions(batch_size=8, subset=62)
    for epoch in range(5):
        counts = np.bincount(labels[options.build(labels, seed=3).wants(epoch)], minlength=40)
        assert sorted(counts[counts > 0].tolist()) == [2, *[5] * 12]


@pytest.mark.parametrize(("sizes", "subset", "seen"), [([3000] * 10, 2048, [256] * 8), ([40, 2, 2, 2, 90], 64, None)])
def test_no_class_fills_the_subset_while_others_wait(sizes: list[int], subset: int, seen: list[int] | None) -> None:
    labels, options = labels_of(*sizes), MiningWeightedOptions(batch_size=8, subset=subset)
    for epoch in range(5):
        counts = np.bincount(labels[options.build(labels, seed=3).wants(epoch)], minlength=len(sizes))
        assert counts.sum() == subset
        if seen is None:
            assert counts[1:4].tolist() == [2, 2, 2]
            assert counts[[0, 4]].min() >= 24
        else:
            assert counts[counts > 0].tolist() == seen


def test_rows_without_weight_are_never_drawn_and_others_as_often_as_they_weigh() -> None:
    informed = sampler_of().informed(1, random_rows(20))
    assert informed.weights is not None
    assert (informed.weights == 0).sum() >= 12
    drawn = np.concatenate([informed.batch(1, step) for step in range(2000)])
    counts = np.bincount(drawn, minlength=32)
    assert not counts[informed.weights == 0].any()
    expected = 16000 * informed.weights / informed.weights.sum()
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


def test_nothing_mined_draws_the_subset_uniformly() -> None:
    sampler = sampler_of(miner=PairMarginMinerOptions(positive_above=2, negative_below=1e-6))
    rows = sampler.wants(1)
    informed = sampler.informed(1, l2_normalize(np.eye(20, dtype=np.float32)))
    assert informed.weights is not None
    assert informed.weights[rows].tolist() == [1] * 20
    assert informed.weights.sum() == 20
    assert set(np.concatenate([informed.batch(1, step) for step in range(60)]).tolist()) == set(rows.tolist())


def test_draws_are_with_replacement() -> None:
    informed = sampler_of(subset=9).informed(1, random_rows(9))
    assert any(len(set(informed.batch(1, step).tolist())) < 8 for step in range(20))


@pytest.mark.parametrize(("subset", "batch_size", "fitting"), [(20, 24, 20), (500, 40, 32)])
def test_a_batch_larger_than_its_subset_is_refused_with_one_that_fits(
    subset: int, batch_size: int, fitting: int
) -> None:
    with pytest.raises(DataError, match=rf"batch_size {batch_size}, .* Set batch_size to {fitting} or less"):
        sampler_of(subset, batch_size=batch_size)
    assert sampler_of(subset, batch_size=fitting).steps_per_epoch == 32 // fitting


def test_a_part_of_the_table_is_told() -> None:
    assert sampler_of().notes == ("20 of 32 images are looked at, others each epoch",)
    assert sampler_of(32).notes == ()


@pytest.mark.parametrize("subset", [1, 8193])
def test_a_subset_whose_pairs_are_none_or_too_many_is_refused(subset: int) -> None:
    with pytest.raises(ValidationError, match="subset"):
        MiningWeightedOptions(subset=subset)
    assert MiningWeightedOptions(subset=8192).subset == 8192


def test_a_miner_whose_triplets_fill_no_memory_is_refused() -> None:
    with pytest.raises(ValidationError, match="semi_hard"):
        MiningWeightedOptions.model_validate({"miner": {"name": "semi_hard"}})
