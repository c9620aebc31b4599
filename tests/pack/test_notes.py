"""Launchers whose storage fails, and when they start members again."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import sfora_ray.training.patience as patience
from sfora_ray.config.member import Cause
from sfora_ray.errors import StorageError
from sfora_ray.pack import local, notes, pauses
from sfora_ray.pack.local import LocalMembers
from sfora_ray.pack.notes import STOPPED_UNSAVED, Outage, note_end, note_failure, note_unsaved
from sfora_ray.pack.pauses import Pauses
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.attempts import begin_attempt, restarts
from sfora_ray.training.member_folder import AttemptEvent, MemberFolder
from tests.tiny import tiny_config, tiny_spec


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES_SECONDS", (0.01,))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("append_attempt", "write_result", "ask_to_stop"):
        monkeypatch.setattr(MemberFolder, method, full)


def test_an_end_is_of_the_attempt_that_began_last(tmp_path: Path) -> None:
    folder = MemberFolder(tmp_path)
    begin_attempt(folder, 0)
    note_end(folder, 1, "signal", "killed")
    assert len(folder.attempts()) == 1, "nothing has begun since"
    note_end(folder, 0, "signal", "killed")
    assert (folder.attempts()[-1].event, folder.attempts()[-1].reason) == ("ended", "killed")


def test_an_attempt_that_was_cut_off_is_no_fault(tmp_path: Path) -> None:
    folder = MemberFolder(tmp_path)
    begin_attempt(folder, 0)
    note_unsaved(folder, 0)
    assert (folder.attempts()[-1].cause, folder.attempts()[-1].reason) == ("", STOPPED_UNSAVED)
    begin_attempt(folder, 0)
    assert restarts(folder.attempts()) == ()


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_spoils_the_note_alone(images: Path, tmp_path: Path) -> None:
    folder = MemberFolder(tmp_path)
    started = AttemptEvent(event="started", holder="one", time_ms=0)
    folder.attempts_path.write_text(started.model_dump_json() + "\n")
    note_end(folder, 0, "signal", "killed")
    note_unsaved(folder, 0)
    note_failure(tiny_spec(tiny_config(images, tmp_path)), folder, "signal", "killed")
    assert len(folder.attempts()) == 1
    assert folder.result() is None


def test_storage_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    outage = Outage()
    with outage.passed_over():
        full()
    monkeypatch.setattr(notes, "_PATIENCE_SECONDS", 0.0)
    with pytest.raises(StorageError, match="has failed for 0 s"), outage.passed_over():
        full()


@pytest.mark.parametrize(("cause", "paused"), [("storage", True), ("signal", False), ("exception", False)])
def test_only_storage_is_given_time(cause: Cause, paused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    waits = Pauses()
    waits.note("m00", cause)
    assert waits.is_over("m00") is not paused
    assert waits.is_over("m01")
    now += pauses.PAUSES_SECONDS[0]
    assert waits.is_over("m00")
    waits.note("m00", cause)
    now += pauses.PAUSES_SECONDS[0]
    assert waits.is_over("m00") is not paused
    now += pauses.PAUSES_SECONDS[1]
    assert waits.is_over("m00")


class Dying:
    """A process that ends at once, with exit code 4."""

    pid = 1
    exitcode = 4

    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float | None = None) -> None:
        pass

    terminate = kill = join


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which processes that die at once have been started."""
    started: list[float] = []
    monkeypatch.setattr(local, "member_process", lambda *_: Dying())
    monkeypatch.setattr(local, "start", lambda *_: started.append(time.monotonic()))
    return started


def poll_until(done: Callable[[], bool], members: LocalMembers) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        members.poll()
        time.sleep(0.02)


@pytest.mark.usefixtures("full_disk")
def test_members_whose_storage_fails_are_started_again_after_pauses(
    dying: list[float], images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "PAUSES_SECONDS", (0.3, 0.6))
    run = RunFolder.create(tiny_config(images, tmp_path, "seeds=[5]", "resources.max_failures=2"), weights="none")
    members = LocalMembers(run, run.specs())
    poll_until(lambda: members.poll()["m00"] == "failed", members)
    first, second, third = dying
    assert second - first >= 0.3
    assert third - second >= 0.6
    members.stop()


@pytest.mark.usefixtures("full_disk")
def test_members_are_ended_though_they_cannot_be_asked(dying: list[float], images: Path, tmp_path: Path) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path, "seeds=[5]"), weights="none")
    members = LocalMembers(run, run.specs())
    assert members.poll() == {"m00": "running"}
    members.stop()
    assert members.poll() == {"m00": "stopped"}
    assert len(dying) == 1


def test_a_member_lands_when_its_folder_can_be_read_again(
    dying: list[float], images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path, "seeds=[5]", "resources.max_failures=0"), weights="none")
    members = LocalMembers(run, run.specs())
    members.poll()
    with monkeypatch.context() as patch:
        patch.setattr(MemberFolder, "result", full)
        assert members.poll() == {"m00": "running"}
    assert members.poll() == {"m00": "failed"}
    assert run.results()["m00"].cause == "storage"
