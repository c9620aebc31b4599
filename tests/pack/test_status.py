"""What a pack and its members are doing, from the folder alone."""

import os
import socket
from pathlib import Path

import pytest

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.status import MemberView, member_views, pack_view
from sfora_ray.pack.summary import restarted
from sfora_ray.training.announcer import now_ms
from sfora_ray.training.attempts import begin_attempt, end_attempt
from sfora_ray.training.member_folder import Progress
from tests.tiny import tiny_config


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tiny_config(tmp_path / "photos", tmp_path), weights="none")


def trains(run: RunFolder, spec: MemberSpec, seconds_ago: float = 0.0) -> None:
    time_ms = now_ms() - int(1000 * seconds_ago)
    progress = Progress(state="training", epoch=2, epochs=2, step=2, steps_per_epoch=4, loss=3.0, time_ms=time_ms)
    run.member(spec).write_progress(progress)


def ends(run: RunFolder, spec: MemberSpec, result: MemberResult) -> None:
    run.member(spec).write_result(result.model_copy(update={"id": spec.id, "seed": spec.seed}))


FINISHED = MemberResult(id="", seed=0, status="finished", best_epoch=2, metrics={"recall_at_1": 0.5})
FAILED = MemberResult(
    id="", seed=0, status="failed", cause="signal", reason="killed by SIGKILL", restarts=("killed by SIGSEGV",)
)


def states(run: RunFolder) -> list[str]:
    return [view.state for view in member_views(run, {})]


def last(run: RunFolder) -> MemberView:
    return member_views(run, {})[-1]


def test_members_are_seen_from_the_folder_alone(run: RunFolder) -> None:
    first, second = run.specs()
    ends(run, first, FINISHED)
    trains(run, second)
    views = member_views(run, {})
    assert [(view.id, view.state, view.share_done) for view in views] == [
        ("m00", "finished", 1.0),
        ("m01", "training", 0.75),
    ]
    assert (views[0].recall_at_1, views[1].loss) == (0.5, 3.0)
    assert [view.state for view in member_views(run, {"m01": "queued"})] == ["finished", "queued"]
    assert [view.state for view in member_views(run, {"m01": "stopped"})] == ["finished", "stopped"]


def test_a_pack_that_was_never_started(run: RunFolder) -> None:
    assert (str(pack_view(run)), states(run)) == ("never started, 2 members planned", ["queued", "queued"])


def test_a_pack_that_is_being_trained(run: RunFolder) -> None:
    with run_lock(run.path):
        assert str(pack_view(run)).startswith(f"running by process {os.getpid()} on {socket.gethostname()} since ")
        assert str(pack_view(run)).endswith(", 0 of 2 members finished")


def test_a_pack_that_was_interrupted(run: RunFolder) -> None:
    first, _ = run.specs()
    begin_attempt(run.member(first), step=0)
    assert str(pack_view(run)) == "interrupted, 0 of 2 members finished"
    ends(run, first, FINISHED)
    assert str(pack_view(run)) == "interrupted, 1 of 2 members finished"


def test_trained_but_not_folded_is_interrupted(run: RunFolder) -> None:
    for spec in run.specs():
        ends(run, spec, FINISHED)
    assert pack_view(run).state == "interrupted"


def test_a_partial_pack_says_why(run: RunFolder) -> None:
    first, second = run.specs()
    ends(run, first, FINISHED)
    ends(run, second, FAILED)
    assert str(pack_view(run)) == "partial, 1 of 2 members finished"
    assert last(run).note == "signal, restarted once: killed by SIGKILL"


def test_an_extended_pack_is_not_finished(run: RunFolder) -> None:
    for spec in run.specs():
        ends(run, spec, FINISHED)
    config = run.manifest().config
    longer = config.model_copy(update={"training": config.training.model_copy(update={"epochs": 3})})
    run.extend(longer)
    assert str(pack_view(run)) == "interrupted, 0 of 2 members finished"


@pytest.mark.parametrize(("seconds_ago", "expected"), [(50, "training"), (70, "interrupted")])
def test_a_member_without_a_word_was_interrupted(run: RunFolder, seconds_ago: float, expected: str) -> None:
    trains(run, run.specs()[1], seconds_ago)
    assert last(run).state == expected


def test_it_is_only_silent_while_somebody_looks_after_it(run: RunFolder) -> None:
    trains(run, run.specs()[1], 123)
    with run_lock(run.path):
        view = last(run)
    assert (view.state, view.note) == ("training", "silent for 2:03")
    assert member_views(run, {"m01": "running"})[1].note == "silent for 2:03"


def test_who_says_little_is_not_silent_so_soon(tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "photos", tmp_path, "training.progress_seconds=20")
    run = RunFolder.create(config, weights="none")
    trains(run, run.specs()[1], 190)
    assert last(run).state == "training"
    trains(run, run.specs()[1], 210)
    assert last(run).state == "interrupted"


def test_a_member_that_began_again_says_so(run: RunFolder) -> None:
    folder = run.member(run.specs()[1])
    begin_attempt(folder, step=0)
    end_attempt(folder, "signal", "killed by SIGKILL")
    begin_attempt(folder, step=4)
    assert last(run).note == "restarted once"
    trains(run, run.specs()[1])
    assert last(run).note == "restarted once"


def test_how_often_in_words() -> None:
    assert [restarted("x" * times) for times in range(4)] == [
        "",
        "restarted once",
        "restarted twice",
        "restarted 3 times",
    ]
