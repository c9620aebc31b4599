import shutil
from pathlib import Path

import pytest

from sfora_ray.data import cars, sop
from sfora_ray.data.base import SplitCounts
from tests.cli.conftest import Call
from tests.data.trees import all_cars, sop_rows, sop_text, write_cars_whole
from tests.tiny import tiny_values
from tests.tiny_runs import write_config


def test_data_check_names_every_absent_image_and_prints_coarse_classes(
    images: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row for split in ("train", "test") for row in sop_rows(split) if row[1] % 2_000 == 1]
    train, test = ([row for row in rows if (row[1] < 11_319) is own] for own in (True, False))
    counts = SplitCounts(
        train_classes=len({row[1] for row in train}),
        train_images=len(train),
        test_classes=len({row[1] for row in test}),
        test_images=len(test),
        channels=3,
        coarse_classes=len({row[2] for row in rows}),
    )
    monkeypatch.setattr(sop, "_COUNTS", counts)
    for split, own in (("train", train), ("test", test)):
        (tmp_path / f"Ebay_{split}.txt").write_bytes(sop_text(own))
    for row in rows[2:]:
        (tmp_path / row[3]).parent.mkdir(exist_ok=True)
        shutil.copy(images / "class02" / "1.png", tmp_path / row[3])
    values = tiny_values(images, tmp_path) | {"data": {"name": "sop", "root": str(tmp_path)}}
    config = write_config(tmp_path / "tiny.yaml", values)
    ended = call("data", "check", config)
    assert ended.code == 2
    assert [line for line in ended.err.splitlines() if line.endswith(": absent")] == [
        f"{tmp_path / row[3]}: absent" for row in rows[:2]
    ]
    for row in rows[:2]:
        (tmp_path / row[3]).parent.mkdir(exist_ok=True)
        shutil.copy(images / "class02" / "1.png", tmp_path / row[3])
    ended = call("data", "check", config)
    kinds = len({row[2] for row in train})
    assert (ended.code, ended.out.splitlines()[0]) == (
        0,
        f"train: 6 classes in {kinds} coarse classes, {len(train)} images",
    )


def spoil(images: Path, folder: Path, number: int) -> Path:
    """Copy the images, the first ``number`` of them damaged, and return a configuration of them."""
    damaged = Path(shutil.copytree(images, folder / "images"))
    for path in sorted(damaged.rglob("*.png"))[:number]:
        path.write_bytes(b"no image")
    return write_config(folder / "tiny.yaml", tiny_values(damaged, folder))


@pytest.mark.parametrize(
    ("number", "options", "shown", "more"),
    [
        (20, (), 20, []),
        (21, (), 20, ["and 1 more, 21 in all; --all lists them"]),
        (70, (), 20, ["and 50 more, 70 in all; --all lists them"]),
        (70, ("--all",), 70, []),
    ],
)
def test_data_check_lists_so_many_unreadable_images(
    number: int, options: tuple[str, ...], shown: int, more: list[str], images: Path, tmp_path: Path, call: Call
) -> None:
    ended = call("data", "check", spoil(images, tmp_path, number), *options)
    lines = [line for line in ended.err.splitlines() if line.strip()]
    assert ended.code == 2
    assert [line.split("/")[0].startswith("class") for line in lines[:shown]] == [True] * shown
    assert lines[shown:-1] == more
    assert f"{number} image(s) cannot be read" in lines[-1]


@pytest.mark.parametrize(("options", "shown"), [((), 20), (("--all",), 490)])
def test_data_check_lists_so_many_absent_images(
    options: tuple[str, ...], shown: int, images: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = SplitCounts(train_classes=98, train_images=196, test_classes=98, test_images=294, channels=3)
    monkeypatch.setattr(cars, "_COUNTS", counts)
    write_cars_whole(tmp_path / "cars", all_cars(196, 294), images=False)
    values = tiny_values(images, tmp_path) | {"data": {"name": "cars", "root": str(tmp_path / "cars")}}
    ended = call("data", "check", write_config(tmp_path / "tiny.yaml", values), *options)
    lines = ended.err.splitlines()
    assert (ended.code, len([line for line in lines if line.endswith(": absent")])) == (2, shown)
    assert ("and 470 more, 490 in all; --all lists them" in lines) is (shown == 20)
    assert "listed but absent (490 such)" in lines[-1]
