"""iNaturalist 2021 mini (Van Horn et al., CVPR 2021): 50 photos of each of 10,000 species in 11 super categories.

Half of the species of each super category train, the others test, as in Liao, Tsiligkaridis, Kulis (ICML 2023).
They drew that split once, without a seed, and publish it as two lists, which ``authors`` reads. ``seeded`` draws
another of the same sizes from the annotations alone: numbers on it are close to theirs, not comparable with them.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from pydantic import NonNegativeInt

from sfora_ray.card import Card
from sfora_ray.data.base import DatasetOptions, ImageDataset, SplitCounts
from sfora_ray.data.listed import Listed, Listing, read_lines
from sfora_ray.errors import DataError
from sfora_ray.randomness import numpy_generator

_COUNTS = SplitCounts(
    train_classes=5_003,
    train_images=250_150,
    test_classes=4_997,
    test_images=249_850,
    channels=3,
    coarse_classes=11,
)
SUPER_CATEGORIES = (
    "Amphibians",
    "Animalia",
    "Arachnids",
    "Birds",
    "Fungi",
    "Insects",
    "Mammals",
    "Mollusks",
    "Plants",
    "Ray-finned Fishes",
    "Reptiles",
)
"""In the order of the numbers in the authors' lists."""
_LISTS = {"train": "iNaturalist_train.txt", "test": "iNaturalist_test.txt"}


class InaturalistOptions(DatasetOptions):
    """iNaturalist 2021 mini, split by species."""

    card: ClassVar[Card] = Card(
        title="iNaturalist 2021 mini",
        paper="Van Horn, Cole, Beery, Wilber, Belongie, Mac Aodha, CVPR 2021; split of Liao et al., ICML 2023",
        checked="counts of both splits and of the super categories on loading; a generated tree of the real shape in "
        "tests",
        differences="`seeded` is another draw of the same sizes",
    )
    name: Literal["inaturalist"] = "inaturalist"
    root: Path
    """Folder that holds ``train_mini`` (or ``train_mini_resized``), or that folder; with the lists, or with
    ``train_mini.json``, in either of them."""
    split: Literal["authors", "seeded"] = "authors"
    """The authors' lists ``iNaturalist_train.txt`` and ``iNaturalist_test.txt``, or a draw of our own."""
    split_seed: NonNegativeInt = 0
    """Names the draw of ``seeded``; not the pack's seed."""

    def load(self, cache_dir: Path) -> ImageDataset:  # noqa: ARG002
        """Read the lists or the annotations; no image is decoded yet.

        Raises:
            DataError: a list, the annotations or an image is absent, or the counts are not the published ones.
        """
        folder = _image_folder(self.root)
        if self.split == "authors":
            train, test = (_listed(_beside(self.root, folder, name)) for name in _LISTS.values())
        else:
            train, test = _drawn(_beside(self.root, folder, "train_mini.json"), self.split_seed)
        return Listed(
            "inaturalist", "iNaturalist 2021 mini", self.root, folder, "lists", train, test, _COUNTS
        ).dataset()

    def published_counts(self) -> SplitCounts:
        """Return the counts of the split: the larger half of an odd number of species trains."""
        return _COUNTS


def _image_folder(root: Path) -> Path:
    places = (root / "train_mini", root / "train_mini_resized")
    return next((place for place in places if place.is_dir()), root)


def _beside(root: Path, folder: Path, name: str) -> Path:
    places = (root / name, folder / name)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise DataError(
            f"{root}: {name} must be there, got no such file. Put it there, or set `split` to "
            f"'{'authors' if name.endswith('.json') else 'seeded'}', which does without."
        )
    return found


def _listed(path: Path) -> Listing:
    rows = [_fields(path, number, line) for number, line in enumerate(read_lines(path, "Correct `root`."), start=1)]
    return _listing([file for file, _ in rows], [SUPER_CATEGORIES[place] for _, place in rows])


def _fields(path: Path, number: int, line: str) -> tuple[str, int]:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 3 or not fields[1].isdecimal() or int(fields[1]) >= len(SUPER_CATEGORIES):
        raise DataError(
            f"{path}, line {number}: path, super category (0-{len(SUPER_CATEGORIES) - 1}) and species are needed, "
            f"got '{line}'. Take the authors' list unchanged."
        )
    return fields[0], int(fields[1])


def _listing(files: list[str], coarse: list[str]) -> Listing:
    classes = tuple(PurePosixPath(file).parent.name for file in files)
    return Listing(tuple(files), classes, tuple(files), tuple(coarse))


def _drawn(path: Path, seed: int) -> tuple[Listing, Listing]:
    try:
        with path.open(encoding="utf-8") as stream:
            coarse_of, files = _species(json.load(stream))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: not the published annotations ({type(error).__name__}: {error}). Extract the archive again."
        ) from error
    in_test = _half(coarse_of, seed)
    splits = ([file for file in files if (_folder(file) in in_test) is test] for test in (False, True))
    train, test = (_listing(split, [coarse_of[_folder(file)] for file in split]) for split in splits)
    return train, test


def _species(record: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the super category of each species' folder, and every file below ``train_mini``, sorted."""
    coarse_of = {entry["image_dir_name"]: entry["supercategory"] for entry in record["categories"]}
    files = sorted("/".join(PurePosixPath(entry["file_name"]).parts[-2:]) for entry in record["images"])
    unknown = next((file for file in files if _folder(file) not in coarse_of), None)
    if unknown is not None:
        raise ValueError(f"no category has the folder of {unknown}")
    return coarse_of, files


def _folder(file: str) -> str:
    return file.split("/")[0]


def _half(coarse_of: dict[str, str], seed: int) -> set[str]:
    """Return the species that test: half of each super category, rounded down."""
    chosen: set[str] = set()
    for coarse in sorted(set(coarse_of.values())):
        species = sorted(name for name, own in coarse_of.items() if own == coarse)
        order = numpy_generator(seed, "species", coarse).permutation(len(species))
        chosen |= {species[place] for place in order[: len(species) // 2]}
    return chosen
