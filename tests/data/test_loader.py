import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sfora_ray.data.image_folder import ImageFolderOptions
from sfora_ray.data.loader import Batch, TrainLoader, test_batches
from sfora_ray.data.transforms import InputOptions, augmentation_generator
from sfora_ray.samplers import PerClassOptions, RandomOptions
from tests.data.pictures import noise, table_in_memory

TABLE = table_in_memory({"a": 5, "b": 6, "c": 7})
SAMPLER = PerClassOptions(batch_size=6, samples_per_class=3).build(TABLE.labels, seed=3)
INPUT = InputOptions(image_size=12)


def same(left: list[Batch], right: list[Batch]) -> bool:
    pairs = list(zip(left, right, strict=True))
    return all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in pairs)


def epoch(number: int, first_step: int = 0, shard: tuple[int, int] = (0, 1)) -> list[Batch]:
    transform = INPUT.train_transform()
    loader = TrainLoader(TABLE, transform, seed=3, shard=shard)
    return list(loader.epoch(SAMPLER, number, first_step=first_step))


def test_batches_are_the_samplers_rows_augmented_by_position() -> None:
    transform = INPUT.train_transform()
    for step, (images, labels) in enumerate(epoch(2)):
        rows = SAMPLER.batch(2, step)
        np.testing.assert_array_equal(labels.numpy(), TABLE.labels[rows])
        for position, row in enumerate(rows):
            expected = transform(TABLE.images[int(row)], augmentation_generator(3, 2, step, position))
            assert torch.equal(images[position], expected)
    assert len(epoch(2)) == SAMPLER.steps_per_epoch == 3


def test_resuming_inside_an_epoch_gives_the_missed_batches() -> None:
    assert same(epoch(1, first_step=2), epoch(1)[2:])
    assert not same(epoch(0), epoch(1))


@pytest.mark.parametrize("world", [2, 4])
def test_shards_are_contiguous_parts_of_the_whole_batch(world: int) -> None:
    shards = [epoch(0, shard=(rank, world)) for rank in range(world)]
    joined = [
        (torch.cat([images for images, _ in parts]), torch.cat([labels for _, labels in parts]))
        for parts in zip(*shards, strict=True)
    ]
    assert same(joined, epoch(0))


def test_the_global_generators_are_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    epoch(0)
    list(test_batches(TABLE, INPUT.test_transform(), batch_size=4, num_workers=0, pin_memory=False))
    assert torch.equal(before, torch.get_rng_state())


def test_test_batches_show_every_image_once_with_a_rest_of_one() -> None:
    transform = INPUT.test_transform()
    batches = list(test_batches(TABLE, transform, batch_size=17, num_workers=0, pin_memory=False))
    assert [len(labels) for _, labels in batches] == [17, 1]
    images = torch.cat([images for images, _ in batches])
    assert torch.equal(images, torch.stack([transform(TABLE.images[row]) for row in range(18)]))
    assert torch.cat([labels for _, labels in batches]).tolist() == TABLE.labels.tolist()


@pytest.mark.slow
def test_two_workers_give_what_none_give_in_every_epoch() -> None:
    with_workers = TrainLoader(TABLE, INPUT.train_transform(), seed=3, num_workers=2)
    assert same(list(with_workers.epoch(SAMPLER, 0)), epoch(0))
    next(with_workers.epoch(SAMPLER, 1))  # an epoch left early
    assert same(list(with_workers.epoch(SAMPLER, 1, first_step=1)), epoch(1, first_step=1))


def test_each_epoch_may_have_other_batches() -> None:
    other = RandomOptions(batch_size=4).build(TABLE.labels, seed=9)
    loader = TrainLoader(TABLE, INPUT.train_transform(), seed=3)
    assert same(list(loader.epoch(SAMPLER, 0)), epoch(0))
    labels = [labels.tolist() for _, labels in loader.epoch(other, 1)]
    assert labels == [TABLE.labels[other.batch(1, step)].tolist() for step in range(4)]
    assert same(list(loader.epoch(SAMPLER, 2)), epoch(2))


@pytest.mark.slow
def test_links_to_one_photo_are_never_augmented_alike(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).mkdir()
    photo = tmp_path / "photo.png"
    Image.fromarray(noise(0, 240, 240)).save(photo)
    for number in range(64):
        os.link(photo, tmp_path / "ac"[number % 2] / f"{number}.png")
        os.link(photo, tmp_path / "bd"[number % 2] / f"{number}.png")
    table = ImageFolderOptions(root=tmp_path).load(tmp_path).train
    sampler = RandomOptions(batch_size=16).build(table.labels, seed=0)

    def hashes(seed: int, num_workers: int) -> list[bytes]:
        loader = TrainLoader(table, InputOptions().train_transform(), seed=seed, num_workers=num_workers)
        batches = [images for number in range(2) for images, _ in loader.epoch(sampler, number)]
        return [image.numpy().tobytes() for images in batches for image in images]

    first = hashes(0, 2)
    assert len(set(first)) == len(first) == 2 * 64
    assert first == hashes(0, 0)
    assert not set(first) & set(hashes(1, 0))
