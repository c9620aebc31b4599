"""Members whose processes are stopped, killed or orphaned."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sfora_ray.files import sha256_of
from sfora_ray.pack.local import LocalMembers
from sfora_ray.pack.member_process import told_by
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.attempts import current_attempt
from sfora_ray.training.member_folder import MemberFolder
from tests.pack.conftest import Trained, poll_until_done
from tests.tiny import tiny_config
from tests.tiny_runs import train_here

ENDLESS = ("seeds=[5]", "training.epochs=100000", "training.evaluate_every=100000")
LONG_ENOUGH = ("seeds=[5]", "training.epochs=60", "training.evaluate_every=60")


@pytest.fixture
def launch(images: Path, tmp_path: Path) -> Iterator[Callable[..., tuple[RunFolder, LocalMembers]]]:
    """Make a pack's folder and take its members; whatever is left of them is stopped in the end."""
    launched: list[LocalMembers] = []

    def make(*overrides: str) -> tuple[RunFolder, LocalMembers]:
        run = RunFolder.create(tiny_config(images, tmp_path, *overrides), weights="none")
        launched.append(LocalMembers(run, run.specs()))
        return run, launched[-1]

    yield make
    for members in launched:
        members.stop()


def wait_for(what: Callable[[], bool], members: LocalMembers | None = None, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        if members is not None:
            members.poll()
        time.sleep(0.05)


def only_folder(run: RunFolder) -> MemberFolder:
    (spec,) = run.specs()
    return run.member(spec)


def trains(folder: MemberFolder) -> bool:
    return len(folder.epochs()) > 1


def kill(folder: MemberFolder, by: signal.Signals) -> int:
    attempt = current_attempt(folder)
    assert attempt is not None
    os.kill(attempt.pid, by)
    return attempt.pid


def test_a_killed_member_goes_on_to_the_same_bits(
    launch: Callable[..., tuple[RunFolder, LocalMembers]], images: Path, tmp_path: Path
) -> None:
    run, members = launch(*LONG_ENOUGH)
    folder = only_folder(run)
    wait_for(lambda: trains(folder), members)
    kill(folder, signal.SIGKILL)
    assert list(poll_until_done(members))[-1] == {"m00": "finished"}
    result = run.results()["m00"]
    assert result.restarts == ("killed by SIGKILL, as the system does when memory runs out",)
    starts = [event for event in folder.attempts() if event.event == "started"]
    assert len(starts) == 2
    assert starts[1].step > 0
    straight = train_here(tiny_config(images, tmp_path / "straight", *LONG_ENOUGH))
    for name in ("embeddings.train.npz", "embeddings.test.npz", "model.safetensors"):
        assert sha256_of(folder.path / name) == sha256_of(only_folder(straight).path / name), name


def test_a_member_that_dies_too_often_fails_with_why(launch: Callable[..., tuple[RunFolder, LocalMembers]]) -> None:
    run, members = launch(*ENDLESS, "resources.max_failures=1")
    folder = only_folder(run)
    for by, deaths in ((signal.SIGKILL, 0), (signal.SIGSEGV, 1)):
        wait_for(lambda so_far=deaths: number_of_starts(folder) == so_far + 1, members)  # type: ignore[misc]
        kill(folder, by)
        wait_for(lambda: not alive(last_pid(folder)), members)
    assert list(poll_until_done(members))[-1] == {"m00": "failed"}
    result = run.results()["m00"]
    assert (result.status, result.cause, result.reason) == ("failed", "signal", "killed by SIGSEGV")
    assert result.restarts == ("killed by SIGKILL, as the system does when memory runs out",)


def number_of_starts(folder: MemberFolder) -> int:
    return sum(event.event == "started" for event in folder.attempts())


def last_pid(folder: MemberFolder) -> int:
    attempt = current_attempt(folder)
    assert attempt is not None
    return attempt.pid


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_bad_input_is_not_tried_again(tmp_path: Path) -> None:
    run = RunFolder.create(tiny_config(tmp_path / "nowhere", tmp_path, "seeds=[1]"), weights="none")
    members = LocalMembers(run, run.specs())
    assert list(poll_until_done(members))[-1] == {"m00": "failed"}
    assert (run.results()["m00"].cause, run.results()["m00"].restarts) == ("input", ())


def test_a_stopped_member_saves_its_state_and_leaves_nothing_behind(
    launch: Callable[..., tuple[RunFolder, LocalMembers]],
) -> None:
    run, members = launch(*ENDLESS, "training.checkpoint_every=100000", "training.progress_seconds=0.1")
    folder = only_folder(run)
    wait_for(lambda: trains(folder), members)
    pid = last_pid(folder)
    started = time.monotonic()
    members.stop()
    assert time.monotonic() - started < 9
    assert not alive(pid)
    assert members.poll() == {"m00": "stopped"}
    assert run.results() == {}
    assert not folder.stop_path.exists()
    again = LocalMembers(run, run.specs())
    try:
        wait_for(lambda: number_of_starts(folder) == 2, again)
    finally:
        again.stop()
    attempt = current_attempt(folder)
    assert attempt is not None
    assert attempt.step > 0, "only the request to stop can have saved anything"


def test_a_member_that_was_stopped_from_outside_is_stopped(
    launch: Callable[..., tuple[RunFolder, LocalMembers]],
) -> None:
    run, members = launch(*ENDLESS, "training.progress_seconds=0.1")
    folder = only_folder(run)
    wait_for(lambda: trains(folder), members)
    folder.ask_to_stop()
    wait_for(lambda: members.poll()["m00"] != "running")
    assert members.poll() == {"m00": "stopped"}


DRIVER = """
import sys, time
from pathlib import Path
from sfora_ray.pack.local import LocalMembers
from sfora_ray.pack.run_folder import RunFolder
if __name__ == "__main__":
    run = RunFolder.open(Path(sys.argv[1]))
    members = LocalMembers(run, run.specs())
    while True:
        members.poll()
        time.sleep(0.1)
"""


def test_members_die_with_a_driver_that_was_killed(images: Path, tmp_path: Path) -> None:
    run = RunFolder.create(tiny_config(images, tmp_path, *ENDLESS), weights="none")
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    with subprocess.Popen([sys.executable, str(script), str(run.path)], start_new_session=True) as driver:
        try:
            wait_for(lambda: trains(only_folder(run)))
            below = [child.pid for child in psutil.Process(driver.pid).children(recursive=True)]
            assert last_pid(only_folder(run)) in below
            # As a terminal does on Ctrl-C: it reaches the members too, which go on.
            for pid in below:
                os.kill(pid, signal.SIGINT)
            epochs = len(only_folder(run).epochs())
            wait_for(lambda: len(only_folder(run).epochs()) > epochs + 1)
        finally:
            driver.kill()
    wait_for(lambda: not any(alive(pid) for pid in below), seconds=15)


@pytest.mark.parametrize(
    ("exit_code", "expected"),
    [
        (1, ("exception", "its process ended with exit code 1 and left no result")),
        (4, ("storage", "its storage failed, so that it could not even say why")),
        (-9, ("signal", "killed by SIGKILL, as the system does when memory runs out")),
        (-15, ("signal", "killed by SIGTERM")),
        (-200, ("signal", "killed by signal 200")),
    ],
)
def test_exit_codes_in_words(exit_code: int, expected: tuple[str, str]) -> None:
    assert told_by(exit_code) == expected


def test_an_undisturbed_member_has_no_restarts(trained: Trained) -> None:
    assert [result.restarts for result in trained.run.results().values()] == [(), ()]
