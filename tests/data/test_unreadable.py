import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sfora_ray.data import images as images_module
from sfora_ray.data.base import ImageDataset, ImageTable
from sfora_ray.data.cache import CachedDataset, cached
from sfora_ray.data.image_folder import ImageFolderOptions
from sfora_ray.data.images import decode_image
from sfora_ray.data.loader import Batch, TrainLoader, test_batches
from sfora_ray.data.transforms import InputOptions, augmentation_generator
from sfora_ray.data.unreadable import Tolerance, UnreadableImage, UnreadableImageError, without
from sfora_ray.errors import DataError, StorageError
from sfora_ray.samplers import PerClassOptions, Sampler
from tests.data.pictures import write_folder

INPUT = InputOptions(image_size=12)
# Interleaved: a, c, e train; b, d, f test.
COUNTS = dict.fromkeys("abcdef", 6)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "photos", COUNTS)


def load(photos: Path) -> ImageDataset:
    return ImageFolderOptions(root=photos).load(photos)


def fill(photos: Path, *, tolerate: int, limit_bytes: int = 10**9) -> CachedDataset:
    where = photos.parent / "cache"
    return cached(load(photos), where, limit_bytes=limit_bytes, on_progress=lambda *_: None, tolerate=tolerate)


def spoil(photos: Path) -> tuple[str, ...]:
    """Make three files unreadable, each in its own way; return their ids in the order of the tables."""
    (photos / "a" / "02.png").write_bytes(b"")
    whole = (photos / "c" / "05.png").read_bytes()
    (photos / "c" / "05.png").write_bytes(whole[: len(whole) // 2])
    (photos / "b" / "00.png").unlink()
    (photos / "b" / "00.png").symlink_to(photos / "nothing.png")
    return "a/02.png", "c/05.png", "b/00.png"


def found_ids(filled: CachedDataset) -> tuple[str, ...]:
    return tuple(image.id for image in filled.unreadable)


def test_tolerated_files_leave_holes_that_are_looked_at_again(photos: Path) -> None:
    whole = (photos / "c" / "05.png").read_bytes()
    ids = spoil(photos)
    first, second = fill(photos, tolerate=3), fill(photos, tolerate=3)
    assert found_ids(first) == found_ids(second) == ids
    assert (first.num_decoded, second.num_decoded) == (36, 0)
    assert "a/02.png: not a readable image, got an empty file" in first.unreadable[0].reason
    assert "b/00.png: not a readable image, got a link to nothing" in first.unreadable[2].reason
    train, row = second.dataset.train, second.dataset.train.ids.index("c/05.png")
    with pytest.raises(UnreadableImageError, match=r"c/05\.png"):
        train.images[row]
    times = (photos / "c" / "05.png").stat().st_mtime_ns
    (photos / "c" / "05.png").write_bytes(whole)
    os.utime(photos / "c" / "05.png", ns=(times, times))
    np.testing.assert_array_equal(train.images[row], decode_image(photos / "c" / "05.png", channels=3))


def test_headers_are_read_where_nothing_is_cached(photos: Path) -> None:
    ids = spoil(photos)
    filled = fill(photos, tolerate=3, limit_bytes=0)
    assert filled.folder is None
    # Half a file has a whole header: it shows when it is decoded.
    assert found_ids(filled) == tuple(identifier for identifier in ids if identifier != "c/05.png")


@pytest.mark.parametrize("limit_bytes", [10**9, 0])
def test_one_too_many_is_one_error_that_names_the_first(photos: Path, limit_bytes: int) -> None:
    spoil(photos)
    with pytest.raises(DataError, match=r"at most 1 images may be unreadable, got 2 .*a/02\.png: not a readable"):
        fill(photos, tolerate=1, limit_bytes=limit_bytes)
    with pytest.raises(DataError, match=r"^\S*a/02\.png: not a readable image, got an empty file"):
        fill(photos, tolerate=0, limit_bytes=limit_bytes)


def test_holes_of_a_tolerant_run_are_errors_of_a_strict_one(photos: Path) -> None:
    spoil(photos)
    fill(photos, tolerate=3)
    with pytest.raises(DataError, match=r"^\S*a/02\.png: not a readable image"):
        fill(photos, tolerate=0)


def test_a_folder_of_holes_alone(tmp_path: Path) -> None:
    photos = write_folder(tmp_path / "photos", {"a": 2, "b": 2})
    for path in photos.glob("*/*.png"):
        path.write_bytes(b"")
    filled = fill(photos, tolerate=4)
    assert len(filled.unreadable) == 4
    with pytest.raises(DataError, match="no image of a split can be read"):
        without(filled.dataset, found_ids(filled))


def test_a_full_disk_is_no_fault_of_an_image(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError, match="No space left on device"):
        fill(photos, tolerate=3)


def test_without_drops_rows_with_a_note_and_another_digest(photos: Path) -> None:
    dataset = load(photos)
    gone = ("a/02.png", "b/00.png", *(f"c/{number:02d}.png" for number in range(6)))
    kept = without(dataset, gone)
    assert kept.train.class_names == ("a", "e")
    assert {*kept.train.ids, *kept.test.ids} == {*dataset.train.ids, *dataset.test.ids} - {*gone}
    assert (len(kept.train), len(kept.test)) == (11, 17)
    assert kept.digest not in ("", dataset.digest)
    assert kept.notes == ("8 unreadable images left out: a/02.png, b/00.png, c/00.png and 5 more",)
    row = kept.train.ids.index("a/03.png")
    np.testing.assert_array_equal(kept.train.images[row], decode_image(photos / "a" / "03.png", channels=3))


def test_without_nothing_is_the_same_data_set(photos: Path) -> None:
    dataset = load(photos)
    assert without(dataset, ()) is dataset
    for path in [photos / "a" / "02.png", photos / "b" / "00.png"]:
        path.unlink()
    # A file that is gone by now is as good as one that was left out.
    assert load(photos).digest == without(dataset, ("a/02.png", "b/00.png")).digest


def test_tolerance_counts_each_image_once() -> None:
    tolerance = Tolerance(2)
    images = [UnreadableImage(name, f"{name}: bad.") for name in ("x", "y", "x", "z")]
    assert [tolerance.add(image) for image in images[:3]] == [True, True, False]
    with pytest.raises(DataError, match=r"at most 2 .* got 3 or more\..*x: bad\.; y: bad\.; z: bad\."):
        tolerance.add(images[3])


def sampler_of(table: ImageTable) -> Sampler:
    return PerClassOptions(batch_size=6, samples_per_class=3).build(table.labels, seed=3)


def loader_of(
    table: ImageTable,
    *,
    on_unreadable: Callable[[UnreadableImage], object] | None,
    workers: int = 0,
    shard: tuple[int, int] = (0, 1),
) -> TrainLoader:
    transform = INPUT.train_transform()
    return TrainLoader(table, transform, seed=3, num_workers=workers, shard=shard, on_unreadable=on_unreadable)


def epochs(loader: TrainLoader, table: ImageTable) -> list[Batch]:
    sampler = sampler_of(table)
    return [batch for number in range(3) for batch in loader.epoch(sampler, number)]


def test_a_training_image_is_replaced_by_another_of_its_class_not_in_the_batch(photos: Path) -> None:
    table = load(photos).train
    sampler = sampler_of(table)
    before = epochs(loader_of(table, on_unreadable=None), table)
    spoil(photos)
    seen: list[str] = []
    after = epochs(loader_of(table, on_unreadable=lambda image: seen.append(image.id)), table)
    transform, lost = INPUT.train_transform(), {table.ids.index("a/02.png"), table.ids.index("c/05.png")}
    num_replaced = 0
    for (epoch, step), old, new in zip(_keys(sampler.steps_per_epoch), before, after, strict=True):
        rows = sampler.batch(epoch, step)
        assert torch.equal(old[1], new[1])
        for position, row in enumerate(rows):
            if int(row) not in lost:
                assert torch.equal(old[0][position], new[0][position])
                continue
            num_replaced += 1
            others = [
                other
                for other in np.flatnonzero(table.labels == table.labels[row])
                if int(other) not in {*rows.tolist(), *lost}
                and torch.equal(
                    new[0][position],
                    transform(table.images[int(other)], augmentation_generator(3, epoch, step, position)),
                )
            ]
            assert len(others) == 1
    assert num_replaced > 3
    assert set(seen) == {"a/02.png", "c/05.png"}


def _keys(steps: int) -> Iterator[tuple[int, int]]:
    yield from ((epoch, step) for epoch in range(3) for step in range(steps))


def test_a_resumed_epoch_draws_the_same_replacements(photos: Path) -> None:
    table = load(photos).train
    spoil(photos)
    sampler = sampler_of(table)
    whole = list(loader_of(table, on_unreadable=lambda _: None).epoch(sampler, 1))
    rest = list(loader_of(table, on_unreadable=lambda _: None).epoch(sampler, 1, first_step=1))
    for (images, _), (again, _) in zip(whole[1:], rest, strict=True):
        assert torch.equal(images, again)


def test_shards_draw_the_replacements_of_the_whole_batch(photos: Path) -> None:
    table = load(photos).train
    spoil(photos)

    def images(rank: int, world: int) -> list[torch.Tensor]:
        return [
            pixels
            for pixels, _ in epochs(loader_of(table, shard=(rank, world), on_unreadable=lambda image: image), table)
        ]

    parts = [torch.cat(pair) for pair in zip(images(0, 2), images(1, 2), strict=True)]
    assert all(torch.equal(part, whole) for part, whole in zip(parts, images(0, 1), strict=True))


def test_without_a_policy_an_unreadable_image_is_an_error_that_names_it(photos: Path) -> None:
    table = load(photos).train
    spoil(photos)
    with pytest.raises(DataError, match=r"^\S*[ac]/0[25]\.png: not a readable image[^\n]*$"):
        epochs(loader_of(table, on_unreadable=None), table)


@pytest.mark.slow
def test_loader_processes_report_the_image_and_not_a_traceback(photos: Path) -> None:
    table = load(photos).train
    spoil(photos)
    seen: list[str] = []
    here: list[str] = []
    with_workers = epochs(loader_of(table, on_unreadable=lambda image: seen.append(image.id), workers=2), table)
    alone = epochs(loader_of(table, on_unreadable=lambda image: here.append(image.id)), table)
    assert seen == here
    assert all(torch.equal(a[0], b[0]) for a, b in zip(with_workers, alone, strict=True))
    with pytest.raises(DataError, match=r"^\S*[ac]/0[25]\.png: not a readable image[^\n]*$"):
        epochs(loader_of(table, on_unreadable=None, workers=2), table)


def test_a_class_that_cannot_be_read_at_all_is_an_error(photos: Path) -> None:
    table = load(photos).train
    for path in (photos / "c").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"c/\d\d\.png: not a readable image"):
        epochs(loader_of(table, on_unreadable=lambda _: None), table)


@pytest.mark.parametrize("replaces", [False, True])
def test_scored_images_must_be_readable_and_embedded_ones_may_be_replaced(photos: Path, replaces: bool) -> None:
    table = load(photos).train
    spoil(photos)
    seen: list[str] = []

    def batches() -> list[Batch]:
        told = (lambda image: seen.append(image.id)) if replaces else None
        return list(
            test_batches(
                table, INPUT.test_transform(), batch_size=5, num_workers=0, pin_memory=False, on_unreadable=told
            )
        )

    if not replaces:
        with pytest.raises(DataError, match=r"a/02\.png: not a readable image"):
            batches()
        return
    images = torch.cat([images for images, _ in batches()])
    again = torch.cat([images for images, _ in batches()])
    assert torch.equal(images, again)
    assert seen == 2 * ["a/02.png", "c/05.png"]
    same = [row for row in range(18) if row != 2 and torch.equal(images[row], images[2])]
    assert [table.labels[row] for row in same] == [table.labels[2]]


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.ENOTCONN])
@pytest.mark.parametrize("hiccups", [2, 9])
def test_hiccups_of_a_file_system_are_waited_out(
    photos: Path, monkeypatch: pytest.MonkeyPatch, number: int, hiccups: int
) -> None:
    calls: list[Path] = []
    opened = Image.open

    def open_badly(path: Path, formats: tuple[str, ...]) -> Image.Image:
        calls.append(path)
        if len(calls) <= hiccups:
            raise OSError(number, os.strerror(number))
        return opened(path, formats=formats)

    monkeypatch.setattr(images_module, "_PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(Image, "open", open_badly)
    path = photos / "a" / "00.png"
    if hiccups == 2:
        assert decode_image(path, channels=3).shape == (20, 24, 3)
        assert len(calls) == 3
    else:
        with pytest.raises(StorageError, match=r"a/00\.png: its file system failed in every try, got .*Error: \[Errno"):
            decode_image(path, channels=3)
        assert len(calls) == 4


def test_an_absent_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images_module, "_PAUSES", (1e9,))
    with pytest.raises(UnreadableImageError, match=r"x\.png: not a readable image, got no file there"):
        decode_image(tmp_path / "x.png", channels=3)
