import json
from collections import Counter
from pathlib import Path

import pytest

from sfora_ray.data import inaturalist
from sfora_ray.data.base import ImageDataset, ImageTable, SplitCounts
from sfora_ray.data.inaturalist import SUPER_CATEGORIES, InaturalistOptions
from sfora_ray.errors import DataError
from tests.data.trees import touch

# Species of each super category, as the competition's page has them.
PUBLISHED = dict(zip(SUPER_CATEGORIES, (170, 142, 153, 1_486, 341, 2_526, 246, 169, 4_271, 183, 313), strict=True))
SMALL = dict.fromkeys(SUPER_CATEGORIES, 3) | {"Birds": 4}
COUNTS = SplitCounts(train_classes=22, train_images=44, test_classes=12, test_images=24, channels=3, coarse_classes=11)


def species() -> list[tuple[str, str]]:
    kinds = [kind for kind, size in SMALL.items() for _ in range(size)]
    return [(f"{number:05d}_Kingdom_Phylum_{number % 5}", kind) for number, kind in enumerate(kinds)]


def images() -> list[str]:
    return [f"{folder}/photo-{number}.jpg" for folder, _ in species() for number in range(2)]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(inaturalist, "_COUNTS", COUNTS)
    touch(tmp_path / "train_mini", images())
    return tmp_path


def write_annotations(root: Path) -> None:
    record = {
        "categories": [
            {"id": number, "image_dir_name": folder, "supercategory": kind}
            for number, (folder, kind) in enumerate(species())
        ],
        "images": [{"id": row, "file_name": f"train_mini/{file}"} for row, file in enumerate(reversed(images()))],
    }
    (root / "train_mini.json").write_text(json.dumps(record))


def write_lists(folder: Path, train_of_each: int = 2) -> None:
    lines: dict[str, list[str]] = {"train": [], "test": []}
    for kind in SUPER_CATEGORIES:
        own = [(number, name) for number, (name, super_category) in enumerate(species()) if super_category == kind]
        for place, (number, name) in enumerate(own):
            split = "train" if place < train_of_each else "test"
            lines[split] += [f"{name}/photo-{n}.jpg,{SUPER_CATEGORIES.index(kind)},{number}\n" for n in range(2)]
    for split, text in lines.items():
        (folder / f"iNaturalist_{split}.txt").write_text("".join(text))


def load(root: Path, **options: object) -> ImageDataset:
    return InaturalistOptions.model_validate({"root": root, **options}).load(root)


def species_by_kind(table: ImageTable) -> Counter[str]:
    kinds = dict(species())
    return Counter(kinds[name] for name in table.class_names)


def test_the_published_counts_are_halves_of_the_published_species() -> None:
    counts = InaturalistOptions(root=Path("x")).published_counts()
    test = sum(size // 2 for size in PUBLISHED.values())
    assert (counts.train_classes, counts.test_classes) == (10_000 - test, test)
    assert (counts.train_images, counts.test_images) == (50 * (10_000 - test), 50 * test)
    assert counts.coarse_classes == len(PUBLISHED)


def test_a_draw_halves_each_super_category(root: Path) -> None:
    write_annotations(root)
    dataset = load(root, split="seeded")
    assert species_by_kind(dataset.train) == dict.fromkeys(SMALL, 2)
    assert species_by_kind(dataset.test) == {kind: size - 2 for kind, size in SMALL.items()}
    assert load(root, split="seeded").digest == dataset.digest
    assert len({load(root, split="seeded", split_seed=seed).digest for seed in range(5)}) > 1


def test_the_coarse_class_of_an_image_is_its_super_category(root: Path) -> None:
    write_annotations(root)
    kinds = dict(species())
    for table in (load(root, split="seeded").train, load(root, split="seeded").test):
        assert table.coarse_labels is not None
        assert table.coarse_names == SUPER_CATEGORIES
        for row, identifier in enumerate(table.ids):
            assert table.coarse_names[table.coarse_labels[row]] == kinds[identifier.split("/")[0]]
            assert table.class_names[table.labels[row]] == identifier.split("/")[0]


@pytest.mark.parametrize("place", ["", "train_mini"])
def test_the_authors_lists_are_the_split(root: Path, place: str) -> None:
    write_lists(root / place)
    dataset = load(root)
    firsts = {next(name for name, own in species() if own == kind) for kind in SUPER_CATEGORIES}
    assert firsts <= set(dataset.train.class_names)
    assert species_by_kind(dataset.test) == {kind: size - 2 for kind, size in SMALL.items()}
    assert dataset.test.coarse_names == SUPER_CATEGORIES
    assert set(dataset.train.ids) | set(dataset.test.ids) == set(images())


def test_the_folder_of_smaller_copies_will_do(root: Path) -> None:
    (root / "train_mini").rename(root / "train_mini_resized")
    write_lists(root / "train_mini_resized")
    assert load(root / "train_mini_resized").digest == load(root).digest


def test_other_counts_are_refused_with_the_coarse_classes(root: Path) -> None:
    write_lists(root, train_of_each=1)
    with pytest.raises(DataError, match=r"of 12 classes in 11 coarse classes, got 22 train images of 11 classes"):
        load(root)


@pytest.mark.parametrize(
    ("split", "name", "other"),
    [("authors", "iNaturalist_train.txt", "seeded"), ("seeded", "train_mini.json", "authors")],
)
def test_what_a_split_needs_is_named_with_the_other_way(root: Path, split: str, name: str, other: str) -> None:
    with pytest.raises(DataError, match=rf"{name} must be there.*'{other}'"):
        load(root, split=split)


@pytest.mark.parametrize("line", ["a/1.jpg,1", "a/1.jpg,11,5", "a/1.jpg,Birds,5"])
def test_a_list_of_another_form_is_refused_by_its_line(root: Path, line: str) -> None:
    (root / "iNaturalist_train.txt").write_text(f"a/0.jpg,0,0\n{line}\n")
    with pytest.raises(DataError, match=r"iNaturalist_train\.txt, line 2: path, super category \(0-10\)"):
        load(root)


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"categories": [], "images": [{"id": 0, "file_name": "train_mini/a/1.jpg"}]}']
)
def test_other_annotations_are_refused(root: Path, text: str) -> None:
    (root / "train_mini.json").write_text(text)
    with pytest.raises(DataError, match=r"train_mini\.json: not the published annotations"):
        load(root, split="seeded")
