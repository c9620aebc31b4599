"""Parts that cannot work together are refused when the configuration is read, each with the way out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sfora_ray.errors import ConfigError, DataError
from sfora_ray.training.preflight import preflight
from tests.tiny import tiny_config

REFUSED = {
    "contextual, k is not the images of a class": (
        ["loss={name: contextual, k: 2}"],
        r"loss\.k must equal the images of each class in a batch, 4, got 2\. Change",
    ),
    "contextual, odd k": (
        ["loss={name: contextual, k: 3}", "sampler={name: per_class, batch_size: 12, samples_per_class: 3}"],
        r"loss\.k must be even.*got 3\. Use 4",
    ),
    "contextual, batches without a fixed number of a class": (
        ["loss={name: contextual}", "sampler={name: random, batch_size: 12}"],
        r"does not fix how many.*Use sampler\.name 'per_class'",
    ),
    "one image of a class, a loss of pairs": (
        ["loss={name: supcon}", "sampler.samples_per_class=1"],
        r"compares images of one class, but sampler\.samples_per_class is 1.*Use 2 or more",
    ),
    "batches of one class, a loss of ranks": (
        ["loss={name: smooth_ap}", "sampler.batch_size=4"],
        r"compares classes, but a batch of 4 with 4 images of a class holds one\. Set sampler\.batch_size to 8",
    ),
    "a miner, a loss that takes none": (
        ["miner={name: multi_similarity}"],
        r"miner\.name 'multi_similarity' chooses pairs, but loss\.name 'hist' takes none\. Remove miner",
    ),
    "mined triplets, a loss of pairs": (
        ["loss={name: contrastive}", "miner={name: batch_hard}"],
        r"chooses triplets, but loss\.name 'contrastive' is a loss of pairs\. Use loss\.name 'triplet'",
    ),
    "a miner, a recipe that chooses itself": (
        ["loss={name: contrastive}", "miner={name: pair_margin}", "recipe={name: memory, capacity: 24}"],
        r"'pair_margin' and recipe\.name 'memory' would both choose what is compared\. Remove miner",
    ),
    "a memory smaller than a batch": (
        ["loss={name: contrastive}", "recipe={name: memory, capacity: 11}"],
        r"recipe\.capacity \(11\) must not be below sampler\.batch_size \(12\).*Use 12 or more",
    ),
    "the same within distillation": (
        ["loss={name: contrastive}", "recipe={name: distillation, base: {name: memory, capacity: 11}}"],
        r"recipe\.base\.capacity \(11\) must not be below sampler\.batch_size \(12\)",
    ),
    "a miner, a recipe within distillation that chooses itself": (
        ["loss={name: supcon}", "miner={name: pair_margin}", "recipe={name: distillation, base: {name: two_stream}}"],
        r"'pair_margin' and recipe\.base\.name 'two_stream' would both choose what is compared\. Remove miner",
    ),
    "one image of a class, a recipe that compares them": (
        ["recipe={name: adversarial}", "sampler.samples_per_class=1"],
        r"recipe\.name 'adversarial' compares images of one class, but sampler\.samples_per_class is 1",
    ),
    "slices that do not sum to the width": (
        ["loss={name: contrastive}", "recipe={name: cascade, slices: [2, 3, 2]}"],
        r"slices.*\b8\b.*\b7\b|slices.*\b7\b.*\b8\b",
    ),
    "a cascade, a loss that takes no pairs": (
        ["recipe={name: cascade, slices: [2, 3, 3]}"],
        r"recipe\.name 'cascade' chooses what is compared, but loss\.name 'hist' takes no pairs",
    ),
    "two streams, a loss that takes no pairs": (
        ["loss={name: proxy_anchor}", "recipe={name: two_stream}"],
        r"recipe\.name 'two_stream' chooses what is compared, but loss\.name 'proxy_anchor' takes no pairs",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_parts_that_do_not_fit_are_one_clear_error(case: str, tmp_path: Path) -> None:
    overrides, message = REFUSED[case]
    with pytest.raises(ConfigError) as caught:
        tiny_config(tmp_path / "images", tmp_path, *overrides)
    assert re.search(message, str(caught.value)), str(caught.value)
    assert str(caught.value).startswith("tiny: 1 problem(s)")


def test_several_misfits_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)loss\.k must equal.*takes none"):
        tiny_config(tmp_path, tmp_path, "loss={name: contextual, k: 2}", "miner={name: multi_similarity}")


def test_a_memory_that_would_never_be_used_is_refused_before_training(images: Path, tmp_path: Path) -> None:
    memory = "recipe={name: distillation, base: {name: memory, capacity: 24, warmup_steps: 8}}"
    with pytest.raises(ConfigError, match=r"recipe\.base\.warmup_steps \(8\) must be below the 8 steps of the whole"):
        preflight(tiny_config(images, tmp_path, "loss={name: contrastive}", memory))


def test_too_few_classes_for_n_pairs_are_known_before_training(images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, "loss={name: n_pairs}", "sampler={name: n_pairs, batch_size: 14}")
    with pytest.raises(DataError, match=r"n_pairs.*batch_size"):
        preflight(config)


def test_coarse_classes_that_a_sampler_needs_are_missed_before_training(images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, "sampler={name: hierarchical, batch_size: 12, samples_per_class: 2}")
    with pytest.raises(DataError, match=r"hierarchical.*coarse"):
        preflight(config)
