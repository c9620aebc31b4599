import os
import shutil
from pathlib import Path

import pytest
from PIL import Image
from pydantic import ValidationError

from sfora_ray.data import DATASETS
from sfora_ray.data.base import ImageDataset
from sfora_ray.data.image_folder import ImageFolderOptions
from sfora_ray.errors import DataError
from tests.data.pictures import noise, write_folder
from tests.shared import SHARED, needs_shared


def load(root: Path, **options: object) -> ImageDataset:
    return ImageFolderOptions.model_validate({"root": root, **options}).load(root)


def letters(root: Path, count: int = 2) -> Path:
    return write_folder(root / "images", dict.fromkeys("edcba", count))


@pytest.mark.parametrize(
    ("split", "train"),
    [
        ({"kind": "interleaved"}, ("a", "c", "e")),
        ({"kind": "halves"}, ("a", "b")),
    ],
)
def test_fixed_splits_use_sorted_positions(tmp_path: Path, split: dict[str, str], train: tuple[str, ...]) -> None:
    dataset = load(letters(tmp_path), split=split)
    assert dataset.train.class_names == train
    assert dataset.test.class_names == tuple(sorted(set("abcde") - set(train)))
    assert dataset.train.ids == tuple(f"{name}/{number:02d}.png" for name in train for number in range(2))
    assert dataset.train.labels.tolist() == [label for label in range(len(train)) for _ in range(2)]


def test_seeded_split_is_repeatable_and_of_the_asked_size(tmp_path: Path) -> None:
    root = letters(tmp_path)
    splits = [load(root, split={"kind": "seeded", "seed": seed, "train_fraction": 0.6}) for seed in (0, 0, *range(9))]
    assert splits[0].digest == splits[1].digest
    assert {len(dataset.train.class_names) for dataset in splits} == {3}
    assert len({dataset.digest for dataset in splits}) > 3


def test_csv_split(tmp_path: Path) -> None:
    root = letters(tmp_path)
    (root / "split.csv").write_text("class,split\na,test\nb,train\nc,test\nd,train\ne,test\n")
    dataset = load(root, split={"kind": "csv", "path": "split.csv"})
    assert dataset.train.class_names == ("b", "d")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "class,split\na,train\nb,test\nc,test\nd,test\n",
            "every class folder needs a row, got none for 1 (e)",
        ),
        ("class,split\na,train\nb,test\nc,test\nd,test\ne,test\nf,test\n", "got 'f'"),
        ("class,split\na,validation\n", "row 2: columns class and split"),
        ("name,part\na,train\n", "row 2: columns class and split"),
        ("class,split\na,train\na,test\n", "row 3: a class is in one split, got 'a' in both"),
        ("class,split\na,train\nb,train\nc,train\nd,train\ne,train\n", "the test split must have images"),
    ],
)
def test_wrong_csv_is_one_error(tmp_path: Path, text: str, words: str) -> None:
    root = letters(tmp_path)
    (root / "split.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        load(root, split={"kind": "csv", "path": "split.csv"})
    assert words in str(caught.value)


def test_small_classes_are_named_or_left_out_with_a_note(tmp_path: Path) -> None:
    root = letters(tmp_path, 3)
    (root / "empty").mkdir()
    (root / "single").mkdir()
    Image.fromarray(noise(0)).save(root / "single" / "a.png")
    with pytest.raises(DataError, match=r"got 2 smaller: 'empty' with 0, 'single' with 1\. .*leave_out"):
        load(root)
    dataset = load(root, small_classes="leave_out")
    assert dataset.notes == ("2 classes with fewer than 2 images left out (1 images)",)
    assert not {"empty", "single"} & {*dataset.train.class_names, *dataset.test.class_names}


def test_nested_and_odd_names_are_ids(tmp_path: Path) -> None:
    root = tmp_path / "with space"
    names = ["ä b/c'd.JPG", "ä b/deeper/#1 [x].jpeg", "ü/1.png", "ü/2.PNG", "ü/.hidden.png", "ü/notes.txt"]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise(0)).save(root / name, format="PNG")
    dataset = load(root)
    assert dataset.test.ids + dataset.train.ids == (
        "ü/1.png",
        "ü/2.PNG",
        "ä b/c'd.JPG",
        "ä b/deeper/#1 [x].jpeg",
    )
    assert dataset.train.images[1].shape == (20, 24, 3)


def test_files_may_be_links_and_folders_may_not(tmp_path: Path) -> None:
    root = letters(tmp_path)
    Image.fromarray(noise(0)).save(tmp_path / "outside.png")
    (root / "a" / "inside.png").symlink_to(root / "a" / "00.png")
    assert "a/inside.png" in load(root).train.ids
    (root / "a" / "link.png").symlink_to(tmp_path / "outside.png")
    assert load(root).train.images[load(root).train.ids.index("a/link.png")].shape == (20, 24, 3)
    (root / "z").symlink_to(root / "a")
    with pytest.raises(DataError, match="z: a folder must not be a symbolic link"):
        load(root)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../split.csv", "a/../../split.csv", "c:/split.csv", "..\\split.csv", "", "a\0b"]
)
def test_a_split_outside_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValidationError, match="must be a relative path below `root`"):
        load(tmp_path, split={"kind": "csv", "path": path})


def test_absent_empty_and_broken_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a folder"):
        load(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="two class folders or more"):
        load(tmp_path / "empty")
    root = letters(tmp_path)
    (root / "a" / "zero.png").touch()
    (root / "a" / "dangling.png").symlink_to(root / "a" / "nothing.png")
    table = load(root).train
    for name, reason in (("zero", "an empty file"), ("dangling", "a link to nothing")):
        with pytest.raises(DataError, match=rf"{name}\.png: not a readable image, got {reason}"):
            table.images[table.ids.index(f"a/{name}.png")]
    (root / "a" / os.fsdecode(b"\xff.png")).touch()
    with pytest.raises(DataError, match="a file name must be UTF-8 text"):
        load(root)


def test_grey_reading(tmp_path: Path) -> None:
    dataset = load(letters(tmp_path), channels=1)
    assert dataset.channels == 1
    assert dataset.train.images[0].shape == (20, 24, 1)


def test_a_copy_elsewhere_has_the_same_digest(tmp_path: Path) -> None:
    root = letters(tmp_path)
    shutil.copytree(root, tmp_path / "copy", copy_function=os.link)
    assert load(root).digest == load(tmp_path / "copy").digest
    (tmp_path / "copy" / "a" / "01.png").unlink()
    Image.fromarray(noise(1)).save(tmp_path / "copy" / "a" / "02.png")
    assert load(root).digest != load(tmp_path / "copy").digest


@pytest.mark.parametrize("split", [{"kind": "thirds"}, {"kind": "seeded", "train_fraction": 1.0}])
def test_wrong_options_are_refused(tmp_path: Path, split: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        load(tmp_path, split=split)


@needs_shared
def test_grocery_as_in_the_benchmarks() -> None:
    dataset = load(SHARED / "data" / "grocery")
    assert (len(dataset.train.class_names), len(dataset.test.class_names)) == (41, 40)
    assert len(dataset.train) + len(dataset.test) == 3793
    assert dataset.train.class_names[1] == "02-pink-lady"
    assert dataset.train.images[0].shape == (128, 128, 3)


@pytest.mark.parametrize("name", DATASETS)
def test_table_keys_are_the_names(name: str) -> None:
    assert DATASETS[name].model_fields["name"].default == name
