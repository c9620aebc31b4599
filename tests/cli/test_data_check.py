import shutil
from pathlib import Path

import pytest

from sfora_ray.data import sop
from sfora_ray.data.base import SplitCounts
from tests.cli.conftest import Call
from tests.data.trees import sop_rows, sop_text
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
