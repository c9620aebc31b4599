from pathlib import Path

import numpy as np
import pytest

from sfora_ray.data.base import SplitCounts, make_dataset
from sfora_ray.data.listed import AbsentImagesError, Listed, Listing, absent_files, read_lines
from sfora_ray.data.prepared import table_of
from sfora_ray.errors import DataError
from tests.data.pictures import ArrayImages, noise
from tests.data.trees import touch

COUNTS = SplitCounts(train_classes=1, train_images=2, test_classes=1, test_images=1, channels=3)


def listed(folder: Path, *names: str, counts: SplitCounts = COUNTS) -> Listed:
    train, test = (Listing(own, (own[0],) * len(own), own) for own in (names[:-1], names[-1:]))
    return Listed("small", "Small set", folder, folder, "list.txt", train, test, counts)


def test_files_that_are_folders_links_to_nothing_or_not_there_are_absent(tmp_path: Path) -> None:
    touch(tmp_path, ["a/1.jpg", "b/c/2.jpg", "3.jpg"])
    (tmp_path / "a" / "folder.jpg").mkdir()
    (tmp_path / "a" / "dangling.jpg").symlink_to(tmp_path / "nowhere")
    (tmp_path / "a" / "link.jpg").symlink_to(tmp_path / "3.jpg")
    there = ["a/1.jpg", "b/c/2.jpg", "3.jpg", "a/link.jpg"]
    gone = ["a/folder.jpg", "a/dangling.jpg", "b/9.jpg", "3.jpg/4.jpg", "z/1.jpg"]
    found = absent_files(tmp_path, [*there, *gone])
    assert sorted(found) == sorted(tmp_path / name for name in gone)


@pytest.mark.parametrize("name", ["../b.jpg", "/etc/passwd", "a/../../b.jpg", "c:/b.jpg"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"list\.txt: every image must lie below the image folder"):
        listed(tmp_path, "a.jpg", name, "b.jpg").dataset()


def test_absent_images_are_counted_and_kept(tmp_path: Path) -> None:
    touch(tmp_path, ["b.jpg"])
    with pytest.raises(AbsentImagesError, match=r"a\.jpg: listed but absent \(2 such\)") as caught:
        listed(tmp_path, "a.jpg", "b.jpg", "c.jpg").dataset()
    assert caught.value.absent == (tmp_path / "a.jpg", tmp_path / "c.jpg")
    assert caught.value.exit_code == 2


def test_an_image_listed_twice_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, ["a.jpg", "b.jpg"])
    with pytest.raises(DataError, match=r"must be unique, got 'a\.jpg' twice"):
        listed(tmp_path, "a.jpg", "a.jpg", "b.jpg").dataset()


def test_lines_of_any_system(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbf one \r\n\r\ntwo\n")
    assert read_lines(tmp_path / "list.txt", "") == ["one", "two"]
    with pytest.raises(DataError, match=r"none\.txt: not readable .* Look there\."):
        read_lines(tmp_path / "none.txt", "Look there.")


def test_coarse_labels_stay_with_their_rows() -> None:
    class_of, coarse_of = tuple("ddaabbc"), tuple("yyxxyyx")
    images = ArrayImages(np.stack([noise(row) for row in range(7)]))
    table = table_of(tuple("0123456"), class_of, images, coarse_of=coarse_of, coarse_names=("w", "x", "y"))
    assert table.coarse_labels is not None
    assert table.coarse_labels.tolist() == [2, 2, 1, 1, 2, 2, 1]
    part = table.rows(np.array([6, 0, 4]))
    assert part.coarse_labels is not None
    assert [part.coarse_names[label] for label in part.coarse_labels] == ["x", "y", "y"]
    assert [part.class_names[label] for label in part.labels] == ["c", "d", "b"]


def test_a_class_in_two_coarse_classes_is_refused() -> None:
    images = ArrayImages(np.stack([noise(row) for row in range(2)]))
    whole = table_of(("0", "1"), ("a", "b"), images, coarse_of=("x", "y"), coarse_names=("x", "y"))
    split = table_of(("2", "3"), ("c", "c"), images, coarse_of=("y", "x"), coarse_names=("x", "y"))
    with pytest.raises(DataError, match="a class must lie in one coarse class, got 'c' in x and y"):
        make_dataset(name="memory", channels=3, train=whole, test=split)
