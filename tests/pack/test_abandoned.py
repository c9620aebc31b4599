"""Runs that nobody trains any more are closed, each with its true state."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sfora_ray.errors import BusyError
from sfora_ray.pack.abandoned import close_abandoned, close_silent
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.tracking import Tracker
from sfora_ray.training.boundary import failed
from sfora_ray.training.home import Here
from tests.tracking.packs import finish, paper_pack, shown

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('abandoned')}/mlflow.db"


def opened(run: RunFolder) -> Tracker:
    """Return the tracker of a pack whose driver has opened its runs and vanished."""
    tracker = run.manifest().config.tracking.build()
    Mirror(run, tracker).open()
    return tracker


def states(uri: str, experiment: str) -> dict[str, str]:
    return {part: runs[0].info.status for part, runs in shown(uri, experiment).items()}


def test_members_end_as_they_did_and_the_rest_is_killed(uri: str, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, uri, "folder", seeds=3)
    tracker = opened(run)
    first, second, _ = run.specs()
    finish(run, first)
    run.member(second).write_result(failed(second, run.member(second), "exception", "it broke"))
    closed = close_abandoned(run, tracker)
    assert states(uri, "folder") == {"pack": "KILLED", "m00": "FINISHED", "m01": "FAILED", "m02": "KILLED"}
    assert [one.status for one in closed][-1] == "KILLED"
    tags = shown(uri, "folder")["pack"][0].data.tags
    assert f"sfora-ray mlflow sync {run.path}" in tags["sfora.reason"]
    assert close_abandoned(run, tracker) == []


def test_another_pack_is_left_alone(uri: str, tmp_path: Path) -> None:
    one = paper_pack(tmp_path, uri, "two", "name=one")
    other = paper_pack(tmp_path, uri, "two", "name=one-more")
    tracker = opened(one)
    opened(other)
    assert len(close_abandoned(one, tracker)) == 3
    running = {run.tags["sfora.pack"] for run in tracker.running()}
    assert running == {other.path.name}


class TakenOn(Here):
    """A home that another machine begins to write after it was asked so often."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    def is_written(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_nothing_more_is_closed_once_another_machine_has_taken_the_pack_on(uri: str, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, uri, "lease")
    tracker = opened(run)
    with pytest.raises(BusyError, match=r"its pack is alive, got a lease"):
        close_abandoned(RunFolder(run.path, TakenOn(1)), tracker)
    assert sorted(states(uri, "lease").values()) == ["KILLED", "RUNNING", "RUNNING"]
    assert states(uri, "lease")["pack"] == "RUNNING"


def test_only_the_silent_are_closed(uri: str, tmp_path: Path) -> None:
    dead, alive = (paper_pack(tmp_path, uri, "silent", f"name={name}") for name in ("dead", "alive"))
    tracker = opened(dead)
    opened(alive)
    parent = next(run for run in tracker.running() if run.parent is None and run.name == "dead")
    long_ago = int((time.time() - 11 * 60) * 1000)
    tracker.set_tags(parent.id, {"sfora.heartbeat": str(long_ago)})
    closed = close_silent(tracker, silent_minutes=10)
    assert sorted(one.name for one in closed) == ["dead", "m00-seed0 of dead", "m01-seed1 of dead"]
    assert {one.status for one in closed} == {"KILLED"}
    assert "11 minutes" in closed[0].reason
    assert {run.name for run in tracker.running()} == {"alive", "m00-seed0 of alive", "m01-seed1 of alive"}


def test_a_child_left_running_below_a_closed_parent_is_found(uri: str, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, uri, "orphan", seeds=1)
    tracker = opened(run)
    parent = next(one for one in tracker.running() if one.parent is None)
    tracker.set_tags(parent.id, {"sfora.heartbeat": "1000"})
    tracker.close_run(parent.id, "FINISHED")
    assert [one.name for one in close_silent(tracker, 10)] == ["m00-seed0 of tiny"]
    assert states(uri, "orphan") == {"pack": "FINISHED", "m00": "KILLED"}
