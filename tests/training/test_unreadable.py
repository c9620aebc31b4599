import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.data.unreadable import UnreadableImage
from sfora_ray.errors import DataError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.boundary import member_result
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.preflight import preflight
from sfora_ray.training.preparation import member_data, prepare_data
from sfora_ray.training.unreadable import UnreadableImages, unreadable_warnings
from sfora_ray.training.worker import Worker
from tests.tiny import tiny_config

CPU = torch.device("cpu")
# Interleaved: even classes train, odd ones test.
TRAIN, TEST = "class04/3.png", "class05/2.png"
SKIP = ("input.unreadable=skip", "seeds=[5]", "input.cache_gigabytes=0")


@pytest.fixture
def photos(images: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(images, tmp_path / "photos"))


def silent(*_: int) -> None:
    return None


def start(photos: Path, *overrides: str) -> RunFolder:
    """Make a run folder as `pack run` does."""
    config = tiny_config(photos, photos.parent, *SKIP, *overrides)
    left_out = prepare_data(config, silent).left_out
    plan = preflight(config, left_out)
    return RunFolder.create(config, plan.weights, plan.dataset_digest, left_out=left_out)


def train(run: RunFolder) -> MemberResult:
    (spec,) = run.specs()
    return member_result(spec, run.member(spec).path, Worker.alone(CPU))


def damage(path: Path) -> None:
    """Spoil what a header does not show."""
    path.write_bytes(path.read_bytes()[:-60])


@pytest.mark.parametrize("gigabytes", ["0", "1"])
def test_images_unreadable_at_the_start_are_left_out_by_all_of_the_pack(photos: Path, gigabytes: str) -> None:
    for name in (TRAIN, TEST):
        (photos / name).write_bytes(b"")
    run = start(photos, f"input.cache_gigabytes={gigabytes}")
    assert run.manifest().left_out == (TRAIN, TEST)
    result = train(run)
    assert result.status == "finished"
    assert f"2 unreadable images left out: {TRAIN}, {TEST}" in result.notes
    assert not any("unreadable" in warning for warning in result.warnings)
    planned = preflight(run.manifest().config, (TRAIN, TEST)).dataset_digest
    assert result.dataset_digest == run.manifest().dataset_digest == planned
    assert result.dataset_digest != preflight(run.manifest().config).dataset_digest
    tables = [run.embeddings(run.specs()[0], split) for split in ("train", "test")]
    assert not {TRAIN, TEST} & {str(identifier) for table in tables for identifier in table.ids}
    assert sum(len(table.ids) for table in tables) == 94


def test_without_the_policy_the_first_is_an_error(photos: Path) -> None:
    (photos / TRAIN).write_bytes(b"")
    with pytest.raises(DataError, match=rf"{TRAIN}: not a readable image, got an empty file"):
        start(photos, "input.unreadable=error")


def test_a_training_image_damaged_after_the_start_is_replaced_counted_and_told(photos: Path) -> None:
    run = start(photos)
    (spec,) = run.specs()
    whole = train(run)
    before = run.embeddings(spec, "train")
    shutil.rmtree(run.member(spec).path)
    damage(photos / TRAIN)
    result = train(run)
    assert (result.status, result.dataset_digest) == ("finished", whole.dataset_digest)
    assert f"1 training image(s) became unreadable and others of their classes stood in: {TRAIN}" in result.warnings
    lines = run.member(spec).unreadable_path.read_text().splitlines()
    assert len(lines) == 1
    assert TRAIN in lines[0]
    after = run.embeddings(spec, "train")
    np.testing.assert_array_equal(before.ids, after.ids)
    assert _twin_of(after) == after.labels[list(after.ids).index(TRAIN)]


def _twin_of(table: EmbeddingTable) -> int:
    """Return the class of the row that has the same embedding as the damaged image's."""
    rows = np.flatnonzero((table.embeddings == table.embeddings[list(table.ids).index(TRAIN)]).all(axis=1))
    assert len(rows) == 2
    assert len(set(table.labels[rows])) == 1
    return int(table.labels[rows[0]])


def test_two_members_that_lack_an_image_are_the_same_to_the_last_bit(photos: Path) -> None:
    run = start(photos)
    (spec,) = run.specs()
    damage(photos / TRAIN)
    models = []
    for _ in range(2):
        train(run)
        models.append(run.member(spec).model_path.read_bytes())
        shutil.rmtree(run.member(spec).path)
    assert models[0] == models[1]


def test_one_image_too_many_fails_the_member(photos: Path) -> None:
    run = start(photos, "input.max_unreadable=1")
    for name in (TRAIN, "class06/1.png"):
        damage(photos / name)
    result = train(run)
    assert (result.status, result.cause) == ("failed", "input")
    assert "input.max_unreadable: at most 1 images may be unreadable, got 2 or more" in result.reason


@pytest.mark.parametrize(("name", "policy"), [(TRAIN, "error"), (TEST, "error"), (TEST, "skip")])
def test_an_image_that_may_not_be_skipped_fails_the_member_by_name(photos: Path, name: str, policy: str) -> None:
    run = start(photos, f"input.unreadable={policy}")
    damage(photos / name)
    result = train(run)
    assert (result.status, result.cause) == ("failed", "input")
    assert result.reason.startswith(f"{photos / name}: not a readable image")


def test_a_test_image_lost_before_a_restart_is_refused_at_once(photos: Path) -> None:
    run = start(photos)
    (photos / TEST).write_bytes(b"")
    (spec,) = run.specs()
    with pytest.raises(DataError, match=rf"{TEST}: .*Members are scored on it"):
        member_data(spec, run.member(spec), silent)


def test_other_rows_than_the_packs_are_refused(photos: Path) -> None:
    run = start(photos)
    (photos / TRAIN).unlink()
    result = train(run)
    assert result.status == "failed"
    assert "must be those that the pack started with" in result.reason


def test_a_pack_from_before_digests_were_recorded_trains(photos: Path) -> None:
    run = start(photos)
    spec = run.specs()[0].model_copy(update={"dataset_digest": ""})
    assert member_data(spec, run.member(spec), silent).dataset.digest == run.manifest().dataset_digest


def test_workers_count_together_and_each_image_once(tmp_path: Path) -> None:
    folder = MemberFolder(tmp_path)
    first, second = UnreadableImages(folder, 2), UnreadableImages(folder, 2)
    images = {name: UnreadableImage(name, f"{name}: bad.") for name in "xyz"}
    for worker, name in ((first, "x"), (second, "x"), (first, "x"), (second, "y")):
        worker.add(images[name])
    assert len(folder.unreadable_path.read_text().splitlines()) == 2
    with pytest.raises(DataError, match="at most 2"):
        first.add(images["z"])
    assert unreadable_warnings(folder) == (
        "2 training image(s) became unreadable and others of their classes stood in: x, y",
    )
    assert unreadable_warnings(MemberFolder(tmp_path / "other")) == ()


def test_the_spec_carries_what_the_pack_decided(photos: Path) -> None:
    (photos / TRAIN).write_bytes(b"")
    run = start(photos)
    (spec,) = run.specs()
    assert MemberSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert (spec.left_out, spec.dataset_digest) == ((TRAIN,), run.manifest().dataset_digest)
