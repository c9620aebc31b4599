"""A member that trains in a working copy of an object store."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfora_ray.training.working_copy as module
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.errors import StorageError
from sfora_ray.recipes.base import LossTerms
from sfora_ray.storage import ObjectStore
from sfora_ray.training import epoch as epoch_module
from sfora_ray.training.attempts import begin_attempt
from sfora_ray.training.boundary import member_result
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.parts import Parts
from sfora_ray.training.step import take_step
from sfora_ray.training.worker import Worker
from sfora_ray.training.working_copy import member_folder
from tests.storage.server import BUCKET, S3Server, s3_server
from tests.tiny import STEPS_PER_EPOCH, tiny_config, tiny_spec
from tests.training.interrupted import Killed, bits, train

EPOCHS = 4


@pytest.fixture(scope="module")
def running() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(running: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    for name, value in running.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(module, "ObjectStore", lambda address: ObjectStore(address, pauses_seconds=(0.01, 0.01)))
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LOOKS", 0.05)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_WORDS", 0.1)
    yield running
    running.faults.clear()
    running.always = None


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    return f"s3://{BUCKET}/{request.node.name}"


@pytest.fixture(scope="module")
def undisturbed(images: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed") / "here"
    train(images, folder)
    return bits(folder)


def spec_of(images: Path, folder: Path, *overrides: str) -> MemberSpec:
    return tiny_spec(tiny_config(images, folder, f"training.epochs={EPOCHS}", *overrides))


def train_at(place: str, spec: MemberSpec) -> MemberResult:
    with member_folder(place, spec) as folder:
        return member_result(spec, folder.path, Worker.alone(), folder.home)


def fetched(s3: S3Server, place: str, target: Path) -> Path:
    """Return a folder with what the store has."""
    prefix = place.removeprefix(f"s3://{BUCKET}/") + "/"
    for key in s3.keys(prefix):
        path = target / key.removeprefix(prefix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(s3.read(key))
    return target


def die_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    def fatal(parts: Parts, *rows: object, **where: int) -> LossTerms:
        if where["step"] == step:
            raise Killed
        return take_step(parts, *rows, **where)  # type: ignore[arg-type]

    monkeypatch.setattr(epoch_module, "take_step", fatal)


def test_a_folder_is_itself(images: Path, tmp_path: Path) -> None:
    with member_folder(str(tmp_path), spec_of(images, tmp_path)) as folder:
        assert folder == MemberFolder(tmp_path)
        assert folder.place == str(tmp_path)


def test_what_is_learnt_lies_in_the_store(
    s3: S3Server, place: str, images: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    result = train_at(place, spec_of(images, tmp_path))

    there = fetched(s3, place, tmp_path / "there")

    assert result.status == "finished"
    assert MemberFolder(there).result() == result
    assert bits(there) == undisturbed
    assert [record.epoch for record in MemberFolder(there).epochs()] == [1, 2, 3, 4]


def test_another_machine_goes_on_from_the_store(
    s3: S3Server,
    place: str,
    images: Path,
    tmp_path: Path,
    undisturbed: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        die_at(patch, 2 * STEPS_PER_EPOCH + 2)
        with pytest.raises(Killed):
            train_at(place, spec_of(images, tmp_path / "one"))
    shutil.rmtree(tmp_path / "one")

    result = train_at(place, spec_of(images, tmp_path / "two"))

    there = fetched(s3, place, tmp_path / "there")
    assert bits(there) == undisturbed
    assert len(result.restarts) == 1
    assert [event.step for event in MemberFolder(there).attempts() if event.event == "started"] == [
        0,
        2 * STEPS_PER_EPOCH,
    ]


def test_a_stale_working_copy_is_made_what_the_store_has(
    s3: S3Server, place: str, images: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    spec = spec_of(images, tmp_path)
    with member_folder(place, spec) as folder:
        stale = folder.path
    for name in ("stop", "result.json", "embeddings.test.npz", "checkpoint/step-00000099/loop.json"):
        (stale / name).parent.mkdir(parents=True, exist_ok=True)
        (stale / name).write_bytes(b"stale")

    assert train_at(place, spec).status == "finished"
    assert bits(fetched(s3, place, tmp_path / "there")) == undisturbed


def test_a_request_to_stop_comes_through_the_store(s3: S3Server, place: str, images: Path, tmp_path: Path) -> None:
    spec = spec_of(images, tmp_path, "training.epochs=500", "training.progress_seconds=0.05")
    prefix = place.removeprefix(f"s3://{BUCKET}/")

    def ask() -> None:
        while not any(key.endswith("loop.json") for key in s3.keys(prefix)):
            time.sleep(0.05)
        s3.write(f"{prefix}/stop", b"")

    asking = threading.Thread(target=ask)
    asking.start()
    result = train_at(place, spec)
    asking.join()

    there = MemberFolder(fetched(s3, place, tmp_path / "there"))
    assert result.status == "stopped"
    assert there.result() is None
    progress = there.progress()
    assert progress is not None
    saved = json.loads(max(there.checkpoint_path.glob("step-*/loop.json")).read_text())
    assert 1 <= saved["epochs_done"] < 500


def test_an_attempt_leaves_when_it_learns_of_a_newer_one(
    s3: S3Server, place: str, images: Path, tmp_path: Path
) -> None:
    spec = spec_of(images, tmp_path / "one", "training.epochs=500", "training.progress_seconds=0.05")
    other = spec_of(images, tmp_path / "two", "training.epochs=500")
    prefix = place.removeprefix(f"s3://{BUCKET}/")
    taken: list[str] = []

    def take_over() -> None:
        while not any(key.endswith("loop.json") for key in s3.keys(prefix)):
            time.sleep(0.05)
        with member_folder(place, other) as folder:
            taken.append(begin_attempt(folder, 0))

    taking = threading.Thread(target=take_over)
    taking.start()
    result = train_at(place, spec)
    taking.join()

    assert result.status == "stopped"
    assert "another attempt" in result.reason
    attempts = MemberFolder(fetched(s3, place, tmp_path / "there")).attempts()
    assert [event.holder for event in attempts if event.event == "started"][1:] == taken


def test_a_store_that_is_away_for_a_checkpoint_costs_a_warning(
    s3: S3Server,
    place: str,
    images: Path,
    tmp_path: Path,
    undisturbed: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away, back = 1 * STEPS_PER_EPOCH + 1, 2 * STEPS_PER_EPOCH + 1

    def weather(parts: Parts, *rows: object, **where: int) -> LossTerms:
        if where["step"] in (away, back):
            s3.always = (503, "") if where["step"] == away else None
        return take_step(parts, *rows, **where)  # type: ignore[arg-type]

    monkeypatch.setattr(epoch_module, "take_step", weather)
    result = train_at(place, spec_of(images, tmp_path))

    assert result.warnings[-1:] == ("1 checkpoint(s) could not be written; the storage was away or full",)
    assert bits(fetched(s3, place, tmp_path / "there")) == undisturbed


def test_a_store_that_stays_away_is_an_error_that_may_be_tried_again(
    s3: S3Server, place: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weather(parts: Parts, *rows: object, **where: int) -> LossTerms:
        s3.always = (503, "")
        return take_step(parts, *rows, **where)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(epoch_module, "take_step", weather)
        with pytest.raises(StorageError, match=f"^{place}/"):
            train_at(place, spec_of(images, tmp_path))
    s3.always = None

    assert train_at(place, spec_of(images, tmp_path)).status == "finished"


def test_other_workers_of_a_member_send_nothing(s3: S3Server, place: str, images: Path, tmp_path: Path) -> None:
    ObjectStore(place).put("checkpoint/step-00000004/state.safetensors", b"state")
    spec = spec_of(images, tmp_path)
    with member_folder(place, spec, rank=1) as folder:
        (folder.path / "worker-1.log").write_text("x")
        assert (folder.checkpoint_path / "step-00000004" / "state.safetensors").read_bytes() == b"state"
        folder.home.publish()
    assert set(ObjectStore(place).listing()) == {"checkpoint/step-00000004/state.safetensors"}
