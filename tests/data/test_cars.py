from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from sfora_ray.data import cars, listed
from sfora_ray.data.base import ImageDataset, SplitCounts
from sfora_ray.data.cars import CarsOptions
from sfora_ray.data.images import FileImages
from sfora_ray.data.listed import AbsentImagesError
from sfora_ray.errors import DataError
from tests.data.trees import WITH_LABELS, all_cars, nest, nothing_absent, write_cars_in_two_parts, write_cars_whole

SMALL = all_cars(98 * 2, 98 * 3)
SMALL_COUNTS = SplitCounts(train_classes=98, train_images=196, test_classes=98, test_images=294, channels=3)


def load(root: Path) -> ImageDataset:
    return CarsOptions(root=root).load(root)


def file_of(dataset: ImageDataset, root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for table in (dataset.train, dataset.test):
        assert isinstance(table.images, FileImages)
        names = (path.relative_to(root).as_posix() for path in table.images.paths)
        found |= dict(zip(table.ids, names, strict=True))
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cars, "_COUNTS", SMALL_COUNTS)


def mirror(root: Path) -> None:
    write_cars_in_two_parts(root, SMALL)
    nest(root)


FORMS: dict[str, Callable[[Path], None]] = {
    "whole": lambda root: write_cars_whole(root, SMALL),
    "kit": lambda root: write_cars_in_two_parts(root, SMALL),
    "mirror": mirror,
    "torchvision": lambda root: write_cars_in_two_parts(root / "stanford_cars", SMALL),
}


@pytest.mark.slow
def test_the_kit_and_its_mirror_have_the_published_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "absent_files", nothing_absent)
    write_cars_in_two_parts(tmp_path, all_cars(), images=False)
    kit = load(tmp_path)
    nest(tmp_path)
    for dataset in (kit, load(tmp_path)):
        assert (len(dataset.train), len(dataset.test)) == (8_054, 8_131)
        assert (dataset.train.class_names[0], dataset.train.class_names[-1]) == (
            "001 Make Model 1",
            "098 Make Model 98",
        )
        assert (dataset.test.class_names[0], len(dataset.test.class_names)) == ("099 Make Model 99", 98)
        assert np.array_equal(dataset.train.labels, np.repeat(np.arange(98), np.bincount(dataset.train.labels)))
        assert dataset.digest == kit.digest


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", FORMS)
def test_an_id_leads_to_the_file_that_its_annotation_names(form: str, tmp_path: Path) -> None:
    FORMS["whole"](tmp_path / "reference")
    FORMS[form](tmp_path / "here")
    whole, here = load(tmp_path / "reference"), load(tmp_path / "here")
    assert (here.train.ids, here.test.ids) == (whole.train.ids, whole.test.ids)
    assert np.array_equal(here.train.labels, whole.train.labels)
    assert here.digest == whole.digest
    files = file_of(here, tmp_path / "here")
    assert len(set(files.values())) == len(SMALL)
    expected = {f"{number:03d}/{'-'.join(map(str, box))}" for number, box in SMALL}
    assert {name.removesuffix("-2") for name in files} == expected
    assert sum(name.count("-") == 4 for name in files) == 2


@pytest.mark.usefixtures("small")
def test_files_are_those_of_the_annotations_order(tmp_path: Path) -> None:
    FORMS["whole"](tmp_path)
    files = file_of(load(tmp_path), tmp_path)
    for place, (number, box) in enumerate(SMALL, start=1):
        if SMALL.count((number, box)) == 1:
            assert files[f"{number:03d}/{'-'.join(map(str, box))}"] == f"car_ims/{place:06d}.jpg"


@pytest.mark.usefixtures("small")
def test_without_the_labels_of_the_test_images_there_is_one_error_and_no_other_split(tmp_path: Path) -> None:
    FORMS["kit"](tmp_path)
    expected = load(tmp_path).digest
    labels = (tmp_path / WITH_LABELS).rename(tmp_path / "elsewhere.mat")
    with pytest.raises(DataError, match=rf"{WITH_LABELS}: absent.*in no other file"):
        load(tmp_path)
    labels.rename(tmp_path / "devkit" / WITH_LABELS)
    assert load(tmp_path).digest == expected


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("form", "name", "published"),
    [
        ("whole", "cars_annos.mat", "beside car_ims.tgz"),
        ("kit", "devkit/cars_train_annos.mat", "in car_devkit.tgz"),
        ("mirror", "devkit/cars_train_annos.mat", "in car_devkit.tgz"),
    ],
)
def test_absent_annotations_are_named_in_full_with_the_way_out(
    form: str, name: str, published: str, tmp_path: Path
) -> None:
    FORMS[form](tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / name}: absent, ")
    assert f"It is published {published}: put it there, or set `data.root`" in told


@pytest.mark.usefixtures("small")
def test_absent_images_are_all_named(tmp_path: Path) -> None:
    FORMS["mirror"](tmp_path)
    gone = [tmp_path / "cars_test" / "cars_test" / f"{number:05d}.jpg" for number in (7, 90)]
    for path in gone:
        path.unlink()
    with pytest.raises(AbsentImagesError, match=r"listed but absent \(2 such\)") as caught:
        load(tmp_path)
    assert sorted(caught.value.absent) == gone


def test_other_counts_are_refused_with_both(tmp_path: Path) -> None:
    FORMS["whole"](tmp_path)
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert "8054 train images of 98 classes and 8131 test images of 98 classes" in str(caught.value)
    assert "got 196 train images of 98 classes and 294 test images of 98 classes" in str(caught.value)


def test_damaged_or_foreign_annotations_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither the folder car_ims .* nor devkit.cars_meta\.mat"):
        load(tmp_path)
    (tmp_path / "car_ims").mkdir()
    (tmp_path / "cars_annos.mat").write_bytes(b"half a download" * 20)
    with pytest.raises(DataError, match=r"cars_annos\.mat: not a readable annotation file"):
        load(tmp_path)
    savemat(tmp_path / "cars_annos.mat", {"annotations": np.zeros(3), "class_names": np.zeros(3)})
    with pytest.raises(DataError, match=r"cars_annos\.mat: not the published annotations"):
        load(tmp_path)
