"""Trees of published data sets, in their real shape and with empty images."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import savemat

Car = tuple[int, tuple[int, int, int, int]]


def touch(folder: Path, names: Iterable[str]) -> None:
    """Make empty files, and the folders that they are in."""
    for path in (folder / name for name in names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def nothing_absent(folder: Path, names: Iterable[str]) -> list[Path]:
    """Take it that every listed image is there: a real tree has too many for a test."""
    return []


def spread(total: int, classes: int) -> list[int]:
    """Return ``classes`` sizes, as equal as possible, that sum to ``total``."""
    return [total // classes + (place < total % classes) for place in range(classes)]


def all_cars(train: int = 8_054, test: int = 8_131) -> list[Car]:
    """Return class number and box of every image; two images of class 3 and two of class 150 share a box."""
    cars = [
        (number, (1 + row, 2 + row % 7, 100 + row, 90 + number))
        for number, size in enumerate((*spread(train, 98), *spread(test, 98)), start=1)
        for row in range(size)
    ]
    for number in (3, 150):
        first = next(place for place, car in enumerate(cars) if car[0] == number)
        cars[first + 1] = cars[first]
    return cars


def _structs(cars: Sequence[Car], files: Sequence[str], file_field: str, flags: Sequence[int]) -> NDArray[Any]:
    fields = ["bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", file_field, "test"]
    rows = np.empty((1, len(cars)), dtype=[(field, object) for field in fields])
    for place, ((number, box), file) in enumerate(zip(cars, files, strict=True)):
        rows[0, place] = (*box, number, file, flags[place])
    return rows


def _class_names() -> NDArray[Any]:
    names = np.empty((1, 196), dtype=object)
    names[0] = [f"Make Model {number}" for number in range(1, 197)]
    return names


def write_cars_whole(root: Path, cars: Sequence[Car], *, images: bool = True) -> None:
    """Write ``cars_annos.mat`` and ``car_ims``, numbered by class."""
    files = [f"car_ims/{number:06d}.jpg" for number in range(1, len(cars) + 1)]
    (root / "car_ims").mkdir(parents=True)
    touch(root, files if images else [])
    rows = _structs(cars, files, "relative_im_path", [place % 2 for place in range(len(cars))])
    savemat(root / "cars_annos.mat", {"annotations": rows, "class_names": _class_names()})


def write_cars_in_two_parts(root: Path, cars: Sequence[Car], *, images: bool = True) -> None:
    """Write the development kit's form: every second image is the site's test image, in an order of its own."""
    (root / "devkit").mkdir(parents=True)
    savemat(root / "devkit" / "cars_meta.mat", {"class_names": _class_names()})
    places = {"cars_train": root / "devkit" / "cars_train_annos.mat", "cars_test": root / WITH_LABELS}
    for part, (folder, path) in enumerate(places.items()):
        own = cars[part::2]
        order = np.random.default_rng(part).permutation(len(own))
        files = [f"{number:05d}.jpg" for number in range(1, len(own) + 1)]
        (root / folder).mkdir()
        touch(root / folder, files if images else [])
        shuffled = [own[place] for place in order]
        savemat(path, {"annotations": _structs(shuffled, files, "fname", [part] * len(own))})


def nest(root: Path) -> None:
    """Turn the kit's form into a mirror's: each image folder within one of its name."""
    for folder in ("cars_train", "cars_test"):
        (root / folder).rename(root / "moved")
        (root / folder).mkdir()
        (root / "moved").rename(root / folder / folder)


WITH_LABELS = "cars_test_annos_withlabels.mat"

SOP_KINDS = (
    *("bicycle", "cabinet", "chair", "coffee_maker", "fan", "kettle"),
    *("lamp", "mug", "sofa", "stapler", "table", "toaster"),
)


@functools.cache
def sop_rows(split: str) -> tuple[tuple[int, int, int, str], ...]:
    """Return the official shape of a list: image, class and super class numbered from 1, and a path."""
    first_class, first_image = (1, 1) if split == "train" else (11_319, 59_552)
    sizes = spread(59_551, 11_318) if split == "train" else spread(60_502, 11_316)
    owners = [place for place, size in enumerate(sizes) for _ in range(size)]
    nth = [number for size in sizes for number in range(size)]
    return tuple(
        (
            first_image + row,
            first_class + owner,
            1 + owner * 12 // len(sizes),
            f"{SOP_KINDS[owner * 12 // len(sizes)]}_final/{110_000_000 + first_class + owner}_{number}.JPG",
        )
        for row, (owner, number) in enumerate(zip(owners, nth, strict=True))
    )


def sop_text(rows: Iterable[tuple[int, int, int, str]], newline: str = "\n") -> bytes:
    """Return a list as it is published."""
    lines = ["image_id class_id super_class_id path", *(" ".join(map(str, row)) for row in rows)]
    return "".join(line + newline for line in lines).encode()
