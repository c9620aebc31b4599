import errno
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sfora_ray.data import images as images_module
from sfora_ray.data.base import ImageDataset
from sfora_ray.data.cache import CachedDataset, cached
from sfora_ray.data.check import check_images
from sfora_ray.data.holdout import hold_out_classes, hold_out_fold
from sfora_ray.data.image_folder import ImageFolderOptions
from sfora_ray.errors import DataError, StorageError
from tests.data.pictures import dataset_in_memory, noise, write_folder


def quiet(done: int, total: int) -> None:
    assert 0 < done <= total


def folder(root: Path) -> ImageDataset:
    write_folder(root, {"a": 3, "b": 2, "c": 2, "d": 4})
    Image.fromarray(noise(9, 31, 17)).save(root / "b" / "tall.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(noise(8, 5, 9)).save(root / "a" / "turned.png", exif=exif)
    return ImageFolderOptions(root=root).load(root)


def build(dataset: ImageDataset, where: Path, limit_bytes: int = 10**9) -> CachedDataset:
    return cached(dataset, where, limit_bytes=limit_bytes, on_progress=quiet)


def test_cached_images_are_the_files_and_the_second_call_decodes_nothing(tmp_path: Path) -> None:
    dataset = folder(tmp_path / "images")
    first = build(dataset, tmp_path / "cache")
    second = build(dataset, tmp_path / "cache")
    assert (first.num_decoded, second.num_decoded) == (13, 0)
    assert first.num_bytes == sum(
        table.images[row].size for table in (dataset.train, dataset.test) for row in range(len(table))
    )
    for found in (first.dataset, second.dataset, pickle.loads(pickle.dumps(second.dataset))):
        for table, plain in ((found.train, dataset.train), (found.test, dataset.test)):
            assert table.ids == plain.ids
            for row in range(len(plain)):
                np.testing.assert_array_equal(table.images[row], plain.images[row])


def test_pickle_carries_no_pixels(tmp_path: Path) -> None:
    write_folder(tmp_path / "images", {"a": 2, "b": 2})
    for name in ("a", "b"):
        Image.fromarray(noise(1, 300, 300)).save(tmp_path / "images" / name / "large.png")
    dataset = ImageFolderOptions(root=tmp_path / "images").load(tmp_path)
    assert len(pickle.dumps(build(dataset, tmp_path / "cache").dataset)) < 5000


def test_members_that_start_together_decode_once(tmp_path: Path) -> None:
    dataset = folder(tmp_path / "images")
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: build(dataset, tmp_path / "cache"), range(4)))
    assert sorted(one.num_decoded for one in found) == [0, 0, 0, 13]


def test_a_changed_photo_makes_another_cache(tmp_path: Path) -> None:
    dataset = folder(tmp_path / "images")
    build(dataset, tmp_path / "cache")
    changed = tmp_path / "images" / "a" / "00.png"
    Image.fromarray(noise(77, 40, 40)).save(changed)
    again = build(dataset, tmp_path / "cache")
    assert again.num_decoded == 13
    np.testing.assert_array_equal(again.dataset.train.images[0], noise(77, 40, 40))


def test_too_large_is_decoded_on_the_fly(tmp_path: Path) -> None:
    dataset = folder(tmp_path / "images")
    exact = build(dataset, tmp_path / "cache").num_bytes
    refused = build(dataset, tmp_path / "other", limit_bytes=exact - 1)
    assert refused.dataset is dataset
    assert (refused.num_decoded, refused.folder) == (0, None)
    assert "decoded on the fly" in refused.note
    assert build(dataset, tmp_path / "other", limit_bytes=exact).num_decoded == 13


def test_a_build_that_died_is_done_again(tmp_path: Path) -> None:
    dataset = folder(tmp_path / "images")
    place = build(dataset, tmp_path / "cache").folder
    assert place is not None
    os.truncate(place / "pixels.bin", 10)
    (place / "index.npy").unlink()
    np.testing.assert_array_equal(build(dataset, tmp_path / "cache").dataset.test.images[0], dataset.test.images[0])


@pytest.mark.parametrize("name", ["index.npy", "pixels.bin"])
@pytest.mark.parametrize("size", [0, 10, 100])
def test_a_cache_that_was_cut_off_is_made_again(tmp_path: Path, name: str, size: int) -> None:
    dataset = folder(tmp_path / "images")
    place = build(dataset, tmp_path / "cache").folder
    assert place is not None
    os.truncate(place / name, size)
    again = build(dataset, tmp_path / "cache")
    assert again.num_decoded == 13
    np.testing.assert_array_equal(again.dataset.test.images[0], dataset.test.images[0])


def test_sources_in_memory_pass_through(tmp_path: Path) -> None:
    dataset = dataset_in_memory()
    assert build(dataset, tmp_path).dataset is dataset
    assert not list(tmp_path.iterdir())


def test_tables_of_chosen_rows_are_cached_too(tmp_path: Path) -> None:
    write_folder(tmp_path / "images", dict.fromkeys("abcdefgh", 2))
    dataset = ImageFolderOptions(root=tmp_path / "images").load(tmp_path)
    train, validation = hold_out_classes(dataset.train, fraction=0.5, seed=0)
    part = ImageDataset("part", 3, "x", train, validation)
    found = build(part, tmp_path / "cache")
    assert found.num_decoded == 8
    for table, plain in ((found.dataset.train, train), (found.dataset.test, validation)):
        for row in range(len(plain)):
            np.testing.assert_array_equal(table.images[row], plain.images[row])


def test_damaged_files_stop_the_cache_and_are_all_listed_by_the_check(tmp_path: Path) -> None:
    dataset = folder(tmp_path / "images")
    for name in ("a/01.png", "d/03.png"):
        whole = (tmp_path / "images" / name).read_bytes()
        (tmp_path / "images" / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"01\.png.*data check"):
        build(dataset, tmp_path / "cache")
    calls: list[tuple[int, int]] = []
    problems = check_images(dataset, lambda done, total: calls.append((done, total)))
    assert [(problem.split, problem.id) for problem in problems] == [
        ("train", "a/01.png"),
        ("test", "d/03.png"),
    ]
    assert all("not a readable image" in problem.reason for problem in problems)
    assert calls == [(number, 13) for number in range(1, 14)]


def test_hold_out_needs_two_classes_on_each_side() -> None:
    table = dataset_in_memory().train
    with pytest.raises(DataError, match=r"two classes must stay on each side, got fraction 0.5 of 2"):
        hold_out_classes(table, fraction=0.5, seed=0)


@pytest.mark.parametrize(("fraction", "held"), [(0.25, 4), (0.01, 2), (0.5, 8)])
def test_hold_out_takes_the_asked_share_of_classes(tmp_path: Path, fraction: float, held: int) -> None:
    names = [f"{number:02d}" for number in range(32)]
    write_folder(tmp_path / "images", dict.fromkeys(names, 2))
    table = ImageFolderOptions(root=tmp_path / "images").load(tmp_path).train
    train, validation = hold_out_classes(table, fraction=fraction, seed=1)
    assert len(validation.class_names) == held
    assert set(train.class_names) | set(validation.class_names) == set(table.class_names)
    assert not set(train.class_names) & set(validation.class_names)
    assert sorted(train.ids + validation.ids) == sorted(table.ids)
    assert [train.class_names[label] for label in train.labels] == [name.split("/")[0] for name in train.ids]
    assert validation.ids == hold_out_classes(table, fraction=fraction, seed=1)[1].ids
    assert validation.ids != hold_out_classes(table, fraction=fraction, seed=2)[1].ids


def test_folds_of_classes_hold_out_every_class_once(tmp_path: Path) -> None:
    names = [f"{number:02d}" for number in range(11)]
    write_folder(tmp_path / "images", dict.fromkeys(names, 2))
    table = ImageFolderOptions(root=tmp_path / "images").load(tmp_path).train
    splits = [hold_out_fold(table, folds=3, fold=fold, seed=5) for fold in range(3)]
    held = [set(validation.class_names) for _, validation in splits]
    assert sorted(name for some in held for name in some) == sorted(table.class_names)
    assert max(map(len, held)) - min(map(len, held)) <= 1
    for train, validation in splits:
        assert not set(train.class_names) & set(validation.class_names)
        assert sorted(train.ids + validation.ids) == sorted(table.ids)
    assert held != [set(hold_out_fold(table, folds=3, fold=fold, seed=6)[1].class_names) for fold in range(3)]


def test_folds_of_classes_need_two_classes_each(tmp_path: Path) -> None:
    write_folder(tmp_path / "images", dict.fromkeys("abcdefghijkl", 2))
    table = ImageFolderOptions(root=tmp_path / "images").load(tmp_path).train
    classes = len(table.class_names)
    with pytest.raises(DataError, match=rf"got {classes} folds of {classes} classes. Use {classes // 2} folds"):
        hold_out_fold(table, folds=classes, fold=0, seed=0)


@pytest.mark.parametrize("failures", [1, 9])
def test_a_file_out_of_reach_for_a_moment_makes_no_other_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    dataset = folder(tmp_path / "data")
    first = build(dataset, tmp_path)
    stat, calls = Path.stat, list[Path]()

    def stat_badly(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.suffix == ".png":
            calls.append(path)
            if len(calls) <= failures:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(images_module, "_PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(Path, "stat", stat_badly)
    if failures == 1:
        assert build(dataset, tmp_path).folder == first.folder
    else:
        with pytest.raises(StorageError, match=r"\.png: its file system failed in every try"):
            build(dataset, tmp_path)
    assert len(list((tmp_path / "decoded").glob("*/index.npy"))) == 1


def test_a_cache_is_that_of_its_absent_files(tmp_path: Path) -> None:
    dataset = folder(tmp_path / "data")
    path = tmp_path / "data" / "a" / "00.png"
    path.unlink()
    for num_decoded in (13, 0):
        assert cached(dataset, tmp_path, limit_bytes=10**9, on_progress=quiet, tolerate=1).num_decoded == num_decoded
    path.symlink_to(path.name)  # in a circle, so that it leads to no file
    (unreadable,) = cached(dataset, tmp_path, limit_bytes=10**9, on_progress=quiet, tolerate=1).unreadable
    assert unreadable.id == "a/00.png"
