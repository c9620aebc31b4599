"""What a plan tells before anything is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfora_ray.training.preflight import preflight
from tests.tiny import CLASSES, IMAGES_PER_CLASS, tiny_config


def mean_number_of_pairs(batch_size: int) -> float:
    labels, generator = np.repeat(np.arange(CLASSES // 2), IMAGES_PER_CLASS), np.random.default_rng(0)
    counts = [np.bincount(generator.choice(labels, batch_size, replace=False)) for _ in range(20_000)]
    return float(np.mean([(sizes * (sizes - 1) / 2).sum() for sizes in counts]))


@pytest.mark.parametrize(
    ("batch_size", "loss", "told"), [(2, "contrastive", True), (2, "proxy_nca", False), (12, "contrastive", False)]
)
def test_random_batches_that_hold_hardly_a_pair_are_told(
    images: Path, tmp_path: Path, batch_size: int, loss: str, told: bool
) -> None:
    sampler = f"sampler={{name: random, batch_size: {batch_size}}}"
    plan = preflight(tiny_config(images, tmp_path, sampler, f"loss={{name: {loss}}}"))
    notes = [note for note in plan.notes if "pairs of one class" in note]
    assert len(notes) == told
    assert told == (loss == "contrastive" and mean_number_of_pairs(batch_size) < batch_size / 8)
    for note in notes:
        said = float(note.partition("holds ")[2].partition(" pairs")[0])
        assert said == pytest.approx(mean_number_of_pairs(batch_size), rel=0.1)
