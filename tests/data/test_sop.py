from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sfora_ray.data import listed, sop
from sfora_ray.data.base import ImageDataset, SplitCounts
from sfora_ray.data.listed import AbsentImagesError
from sfora_ray.data.sop import SopOptions
from sfora_ray.errors import DataError
from tests.data.trees import SOP_KINDS, nothing_absent, sop_rows, sop_text, touch

Row = tuple[int, int, int, str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose images are taken to be there."""
    monkeypatch.setattr(listed, "absent_files", nothing_absent)
    return tmp_path


def write(root: Path, train: Sequence[Row], test: Sequence[Row], newline: str = "\n") -> None:
    (root / "Ebay_train.txt").write_bytes(sop_text(train, newline))
    (root / "Ebay_test.txt").write_bytes(sop_text(test, newline))


def load(root: Path) -> ImageDataset:
    return SopOptions(root=root).load(root)


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> ImageDataset:
    root = tmp_path_factory.mktemp("sop")
    (root / "Stanford_Online_Products").mkdir()
    write(root / "Stanford_Online_Products", sop_rows("train"), sop_rows("test"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listed, "absent_files", nothing_absent)
        return load(root)


@pytest.mark.slow
def test_the_official_lists_have_the_published_counts(official: ImageDataset) -> None:
    train, test = official.train, official.test
    assert (len(train), len(test)) == (59_551, 60_502)
    assert (len(train.class_names), len(test.class_names)) == (11_318, 11_316)
    assert (int(train.labels.min()), int(train.labels.max())) == (0, 11_317)
    assert train.coarse_names == test.coarse_names == SOP_KINDS
    for table in (train, test):
        assert table.coarse_labels is not None
        for row in (0, 30_000, len(table) - 1):
            assert table.ids[row].startswith(f"{table.coarse_names[table.coarse_labels[row]]}_final/")
    assert train.ids[:2] == ("bicycle_final/110000001_0.JPG", "bicycle_final/110000001_1.JPG")


@pytest.mark.slow
def test_windows_line_ends_and_separators_are_read(root: Path, official: ImageDataset) -> None:
    train, test = ([(*row[:3], row[3].replace("/", "\\")) for row in sop_rows(split)] for split in ("train", "test"))
    write(root, train, test, "\r\n")
    found = load(root)
    assert (found.digest, found.train.ids) == (official.digest, official.train.ids)


@pytest.mark.slow
def test_classes_numbered_from_0_give_the_same_labels(root: Path, official: ImageDataset) -> None:
    train, test = ([(row[0], row[1] - 1, *row[2:]) for row in sop_rows(split)] for split in ("train", "test"))
    write(root, train, test)
    found = load(root)
    assert np.array_equal(found.train.labels, official.train.labels)
    assert np.array_equal(found.test.labels, official.test.labels)


@pytest.mark.slow
def test_swapped_lists_are_refused_by_their_counts(root: Path) -> None:
    write(root, sop_rows("test"), sop_rows("train"))
    with pytest.raises(DataError, match="got 60502 train images of 11316 classes and 59551 test images of 11318"):
        load(root)


@pytest.mark.slow
def test_a_class_of_both_lists_is_refused(root: Path) -> None:
    write(root, sop_rows("train"), [(row[0], row[1] - 1, *row[2:]) for row in sop_rows("test")])
    with pytest.raises(DataError, match=r"train and test classes must be disjoint, got 1 in both \(11318\)"):
        load(root)


@pytest.mark.slow
def test_a_class_of_two_kinds_is_refused(root: Path) -> None:
    (image, label, kind, path), *rows = sop_rows("train")
    moved = path.replace("bicycle", "toaster")
    write(root, [(image, label, kind, moved), *rows], sop_rows("test"))
    with pytest.raises(DataError, match=r"must lie in one coarse class, got '00001' in bicycle and toaster"):
        load(root)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "the first line must be 'image_id class_id super_class_id path', got ''"),
        (b"1 1 1 chair_final/1.JPG\n", "the first line must be"),
        (b"image_id class_id super_class_id path\n1 one 1 a/1.JPG\n", "line 2: image_id, class_id"),
        (b"image_id class_id super_class_id path\n1 1 a/1.JPG\n", "line 2: image_id, class_id"),
        (b"\xff\xfe\x00", "not readable"),
    ],
)
def test_a_list_of_another_form_is_refused_by_its_line(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "Ebay_train.txt").write_bytes(text)
    with pytest.raises(DataError, match=rf"Ebay_train\.txt.*{words}"):
        load(tmp_path)


def test_images_lie_below_the_lists_and_absent_ones_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {split: [row for row in sop_rows(split) if row[1] % 1_000 == 1] for split in ("train", "test")}
    counts = {split: (len({row[1] for row in own}), len(own)) for split, own in rows.items()}
    small = SplitCounts(*counts["train"], *counts["test"], channels=3, coarse_classes=len(SOP_KINDS))
    monkeypatch.setattr(sop, "_COUNTS", small)
    write(tmp_path, rows["train"], rows["test"])
    files = [row[3] for own in rows.values() for row in own]
    touch(tmp_path, files)
    assert set(load(tmp_path).train.ids) == {row[3] for row in rows["train"]}
    (tmp_path / files[2]).unlink()
    with pytest.raises(AbsentImagesError) as caught:
        load(tmp_path)
    assert caught.value.absent == (tmp_path / files[2],)
