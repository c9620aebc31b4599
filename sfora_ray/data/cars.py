"""Cars-196 (Krause et al., 3dRR 2013) with the split of the field: classes 1-98 train, 99-196 test.

The site offered it twice: all images in ``car_ims`` with ``cars_annos.mat``, and ``cars_train`` and ``cars_test``
with a development kit, whose test labels are in ``cars_test_annos_withlabels.mat`` alone. The site's own train and
test images are another split, by image, and both are read together. The two forms number the images differently, so
an image is known by its class and its bounding box, which are in both; where two images of a class share a box, their
ids are told apart by file order, which the forms may not share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from scipy.io import loadmat

from sfora_ray.card import Card
from sfora_ray.data.base import DatasetOptions, ImageDataset, SplitCounts
from sfora_ray.data.listed import Listed, Listing
from sfora_ray.errors import DataError

_TRAIN_CLASSES = 98
_COUNTS = SplitCounts(train_classes=98, train_images=8_054, test_classes=98, test_images=8_131, channels=3)
_IMAGES, _WHOLE = "car_ims", "cars_annos.mat"
_WITH_LABELS = "cars_test_annos_withlabels.mat"


class CarsOptions(DatasetOptions):
    """Cars-196 as published, in either form."""

    card: ClassVar[Card] = Card(
        title="Cars-196",
        paper="Krause, Stark, Deng, Fei-Fei, 3dRR workshop at ICCV 2013",
        checked="counts of both splits on loading; generated trees of both published forms and of the nested mirror "
        "in tests, with equal ids and labels",
    )
    name: Literal["cars"] = "cars"
    root: Path
    """Folder with ``cars_annos.mat`` and ``car_ims``, or with ``devkit``, ``cars_train``, ``cars_test`` and
    ``cars_test_annos_withlabels.mat``; also the folder that torchvision's ``stanford_cars`` lies in."""

    def load(self, cache_dir: Path) -> ImageDataset:  # noqa: ARG002
        """Read the annotations; no image is decoded yet.

        Raises:
            DataError: an annotation file or an image is absent, or the counts are not the published ones.
        """
        inner = self.root / "stanford_cars"
        root = inner if inner.is_dir() else self.root
        names, cars = _whole(root) if (root / _IMAGES).is_dir() else _in_two_parts(root)
        train, test = (
            _listing(names, [car for car in cars if (car.number <= _TRAIN_CLASSES) is train]) for train in (True, False)
        )
        return Listed("cars", "Cars-196", root, root, "annotations", train, test, _COUNTS).dataset()

    def published_counts(self) -> SplitCounts:
        """Return the counts of the published split."""
        return _COUNTS


@dataclass(frozen=True)
class _Car:
    """A row of the annotations: class number from 1, bounding box, file below the root."""

    number: int
    box: tuple[int, int, int, int]
    file: str


def _whole(root: Path) -> tuple[list[str], list[_Car]]:
    path = root / _WHOLE
    arrays = _read(path)
    return _names(path, arrays), _cars(path, arrays, "relative_im_path", "")


def _in_two_parts(root: Path) -> tuple[list[str], list[_Car]]:
    kit = root / "devkit"
    meta = kit / "cars_meta.mat"
    if not meta.is_file():
        raise DataError(
            f"{root}: neither the folder {_IMAGES} with {_WHOLE} nor {meta.relative_to(root)} is there. Set `root` "
            "to the folder of the extracted archives."
        )
    with_labels = next((place for place in (root / _WITH_LABELS, kit / _WITH_LABELS) if place.is_file()), None)
    if with_labels is None:
        raise DataError(
            f"{root / _WITH_LABELS}: absent, and the labels of the images in cars_test are in no other file. "
            f"Put it there, or use {_IMAGES} with {_WHOLE}."
        )
    train = kit / "cars_train_annos.mat"
    return _names(meta, _read(meta)), [
        *_cars(train, _read(train), "fname", _image_folder(root, "cars_train")),
        *_cars(with_labels, _read(with_labels), "fname", _image_folder(root, "cars_test")),
    ]


def _image_folder(root: Path, name: str) -> str:
    # A mirror's archives hold the folder within a folder of its name.
    return f"{name}/{name}/" if (root / name / name).is_dir() else f"{name}/"


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        published = f"beside {_IMAGES}.tgz" if path.name == _WHOLE else "in car_devkit.tgz"
        raise DataError(
            f"{path}: absent, and which image is of which class is said nowhere else. It is published {published}: "
            "put it there, or set `data.root` to the folder that holds it and the images."
        )
    try:
        arrays: dict[str, Any] = loadmat(path, appendmat=False)
    except Exception as error:  # what a damaged file raises, scipy leaves open
        raise DataError(
            f"{path}: not a readable annotation file ({type(error).__name__}: {error}). Extract the archive again."
        ) from error
    return arrays


def _names(path: Path, arrays: dict[str, Any]) -> list[str]:
    try:
        return [str(name.item()) for name in arrays["class_names"].ravel()]
    except (LookupError, AttributeError, ValueError) as error:
        raise _unknown(path, error) from error


def _cars(path: Path, arrays: dict[str, Any], file_field: str, prefix: str) -> list[_Car]:
    try:
        rows = arrays["annotations"]
        corners, numbers, files = (
            [[int(value.item()) for value in rows[f"bbox_{corner}"].ravel()] for corner in ("x1", "y1", "x2", "y2")],
            [int(value.item()) for value in rows["class"].ravel()],
            [f"{prefix}{value.item()}" for value in rows[file_field].ravel()],
        )
    except (LookupError, AttributeError, ValueError, TypeError) as error:
        raise _unknown(path, error) from error
    boxes = zip(*corners, strict=True)
    return [_Car(number, box, file) for number, box, file in zip(numbers, boxes, files, strict=True)]


def _unknown(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path}: not the published annotations, got {type(error).__name__}: {error}. Extract the archive again."
    )


def _listing(names: Sequence[str], cars: Sequence[_Car]) -> Listing:
    """List cars by class and box: an order that does not depend on the files' numbers."""
    seen: dict[str, int] = defaultdict(int)
    ids: list[str] = []
    ordered = sorted(cars, key=lambda car: (car.number, car.box, car.file))
    for car in ordered:
        key = f"{car.number:03d}/{'-'.join(map(str, car.box))}"
        seen[key] += 1
        ids.append(key if seen[key] == 1 else f"{key}-{seen[key]}")
    return Listing(tuple(ids), tuple(_title(names, car) for car in ordered), tuple(car.file for car in ordered))


def _title(names: Sequence[str], car: _Car) -> str:
    name = names[car.number - 1] if 1 <= car.number <= len(names) else "?"
    return f"{car.number:03d} {name}"
