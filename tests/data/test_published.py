import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sfora_ray.data.base import ImageDataset
from sfora_ray.data.cub import CubOptions
from sfora_ray.data.omniglot import OmniglotOptions
from sfora_ray.errors import DataError
from tests.shared import SHARED, needs_shared


def write_cub(root: Path, train: int, test: int) -> Path:
    classes = [f"{number:03d}.Bird_{number}" for number in range(1, 201)]
    numbers = [1 + row % 100 for row in range(train)] + [101 + row % 100 for row in range(test)]
    folder = root / "CUB_200_2011"
    for name in classes:
        (folder / "images" / name).mkdir(parents=True)
    files = [f"{classes[number - 1]}/{row}.jpg" for row, number in enumerate(numbers)]
    for name in files:
        (folder / "images" / name).touch()
    lists: dict[str, list[str] | list[int]] = {
        "images": files,
        "image_class_labels": numbers,
        "classes": classes,
    }
    for name, values in lists.items():
        lines = [f"{key} {value}\n" for key, value in enumerate(values, start=1)]
        (folder / f"{name}.txt").write_text("".join(lines))
    return root


@pytest.mark.slow
def test_cub_has_the_published_counts_and_split(tmp_path: Path) -> None:
    root = write_cub(tmp_path, 5864, 5924)
    for place in (root, root / "CUB_200_2011"):
        dataset = CubOptions(root=place).load(tmp_path)
        assert (len(dataset.train), len(dataset.test)) == (5864, 5924)
        assert dataset.train.class_names[-1] == "100.Bird_100"
        assert dataset.test.class_names[0] == "101.Bird_101"
        assert all(
            dataset.train.class_names[label] == identifier.split("/")[0]
            for label, identifier in zip(dataset.train.labels, dataset.train.ids, strict=True)
        )
    (root / "CUB_200_2011" / "images" / dataset.test.ids[0]).unlink()
    with pytest.raises(DataError, match=r"listed but absent \(1 such\)"):
        CubOptions(root=root).load(tmp_path)


def test_cub_with_other_counts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        CubOptions(root=write_cub(tmp_path, 100, 120)).load(tmp_path)
    expected = "has 5864 train images of 100 classes and 5924 test images of 100 classes"
    assert f"{expected}, got 100 train images of 100 classes and 120 test images of 100" in str(caught.value)


def test_cub_absent_or_inconsistent_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"images\.txt: not readable"):
        CubOptions(root=tmp_path).load(tmp_path)
    root = write_cub(tmp_path, 10, 10)
    (root / "CUB_200_2011" / "image_class_labels.txt").write_text("1 1\n")
    with pytest.raises(DataError, match="must agree, got no usable entry for '2'"):
        CubOptions(root=root).load(tmp_path)


def drawing(seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 2, (105, 105)).astype(bool))


def write_drawings(root: Path, alphabets: dict[str, int]) -> None:
    for position, (alphabet, characters) in enumerate(alphabets.items()):
        for character in range(1, characters + 1):
            folder = root / alphabet / f"character{character:02d}"
            folder.mkdir(parents=True)
            for writer in range(1, 4):
                drawing(100 * position + 10 * character + writer).save(folder / f"0{character}_{writer:02d}.png")


def zip_folder(folder: Path) -> None:
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder.parent))


def both_parts(root: Path, train: dict[str, int], test: dict[str, int]) -> None:
    write_drawings(root / "images_background", train)
    write_drawings(root / "images_evaluation", test)


def published(root: Path, cache_dir: Path, **options: object) -> ImageDataset:
    values = {
        "train": ["images_background"],
        "test": ["images_evaluation"],
        "test_alphabets": None,
        **options,
    }
    return OmniglotOptions.model_validate({"root": root, **values}).load(cache_dir)


def same_pixels(left: ImageDataset, right: ImageDataset) -> bool:
    rows = range(len(left.test))
    return all(np.array_equal(left.test.images[row], right.test.images[row]) for row in rows)


def test_omniglot_reads_folders_archives_and_torchvisions_layout(tmp_path: Path) -> None:
    both_parts(tmp_path / "plain", {"Greek": 2, "Latin": 1}, {"Tagalog": 2})
    both_parts(tmp_path / "vision" / "omniglot-py", {"Greek": 2, "Latin": 1}, {"Tagalog": 2})
    both_parts(tmp_path / "zips" / "work", {"Greek": 2, "Latin": 1}, {"Tagalog": 2})
    for part in ("images_background", "images_evaluation"):
        zip_folder(tmp_path / "zips" / "work" / part)
        (tmp_path / "zips" / "work" / f"{part}.zip").rename(tmp_path / "zips" / f"{part}.zip")
    found = [published(tmp_path / name, tmp_path / "cache") for name in ("plain", "vision", "zips")]
    assert found[0].train.class_names == ("Greek/character01", "Greek/character02", "Latin/character01")
    assert found[0].test.ids[:2] == ("Tagalog/character01/01_01", "Tagalog/character01/01_02")
    assert found[0].digest == found[1].digest == found[2].digest
    assert same_pixels(found[0], found[1])
    assert same_pixels(found[0], found[2])


def test_omniglot_is_white_on_black_and_resized(tmp_path: Path) -> None:
    both_parts(tmp_path, {"Greek": 1}, {"Tagalog": 1})
    dataset = published(tmp_path, tmp_path / "cache", image_size=105)
    expected = ~np.asarray(drawing(11))
    np.testing.assert_array_equal(dataset.test.images[0][:, :, 0], expected * np.uint8(255))
    assert published(tmp_path, tmp_path / "cache", image_size=28).test.images[0].shape == (28, 28, 1)


def test_an_alphabet_in_both_splits_is_refused(tmp_path: Path) -> None:
    both_parts(tmp_path, {"Greek": 1, "Latin": 1}, {"Greek": 1, "Tagalog": 1})
    with pytest.raises(DataError, match="an alphabet must be in one split, got Greek in both"):
        published(tmp_path, tmp_path / "cache")
    dataset = published(tmp_path, tmp_path / "cache", test_alphabets=["Tagalog"])
    assert dataset.test.class_names == ("Tagalog/character01",)


def test_omniglot_errors_name_the_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no images_background\.zip and no folder"):
        published(tmp_path, tmp_path / "cache")
    both_parts(tmp_path, {"Greek": 1}, {"Tagalog": 1})
    with pytest.raises(DataError, match="alphabets must be among Tagalog, got Tagalo"):
        published(tmp_path, tmp_path / "cache", test_alphabets=["Tagalo"])
    (tmp_path / "images_background.zip").write_bytes(b"half a download")
    with pytest.raises(DataError, match=r"images_background\.zip: not a readable archive"):
        published(tmp_path, tmp_path / "cache")


@pytest.mark.parametrize("name", ["../Greek/character01/1.png", "/a/Greek/character01/1.png", "a\\b/c/d/1.png"])
def test_members_outside_the_archive_are_refused(tmp_path: Path, name: str) -> None:
    both_parts(tmp_path, {"Greek": 1}, {"Tagalog": 1})
    with zipfile.ZipFile(tmp_path / "images_background.zip", "w") as archive:
        archive.writestr(name, b"")
    with pytest.raises(DataError, match="a member must lie below the archive"):
        published(tmp_path, tmp_path / "cache")


def test_damaged_drawing_is_named_and_nothing_is_cached(tmp_path: Path) -> None:
    both_parts(tmp_path, {"Greek": 1}, {"Tagalog": 1})
    (tmp_path / "images_evaluation" / "Tagalog" / "character01" / "01_02.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="Tagalog/character01/01_02 is not a readable image"):
        published(tmp_path, tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.npy"))


@needs_shared
def test_omniglot_as_in_the_benchmarks(tmp_path: Path) -> None:
    dataset = OmniglotOptions(root=SHARED / "data" / "omniglot").load(tmp_path)
    assert (len(dataset.train.class_names), len(dataset.test.class_names)) == (136, 106)
    assert (len(dataset.train), len(dataset.test)) == (2720, 2120)
    assert "Sanskrit/character01/0851_01" in dataset.test.ids
    with pytest.raises(DataError, match="got Greek, Latin in both"):
        OmniglotOptions(root=SHARED / "data" / "omniglot", test_alphabets=None).load(tmp_path)
