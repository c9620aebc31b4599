"""Signals to real commands: an orderly end at the first, an end at once at the second."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import mlflow
import psutil
import pytest

from sfora_ray.pack.lock import is_locked
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.attempts import current_attempt
from tests.tiny import tiny_config, tiny_values
from tests.tiny_runs import write_config

PROGRAM = "from sfora_ray.cli.main import main; main()"
ENDLESS = (
    "seeds=[0]",
    "training.epochs=100000",
    "training.evaluate_every=100000",
    "training.checkpoint_every=100000",
)


@dataclass(frozen=True)
class Night:
    """A command that trains without end, and where to look at it."""

    process: subprocess.Popen[bytes]
    run: RunFolder
    uri: str
    log: Path

    def below(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def states(self) -> dict[str, str]:
        runs = mlflow.MlflowClient(tracking_uri=self.uri).search_runs(["1"])
        return {run.data.tags["sfora.kind"]: run.info.status for run in runs}

    def as_a_terminal_does(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)


Begin = Callable[..., Night]


@pytest.fixture
def begin(empty_database: Path, images: Path, tmp_path: Path) -> Iterator[Begin]:
    """Start a command in a session of its own, and return when its member trains."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*extra: str, options: tuple[str, ...] = ("--local",)) -> Night:
        uri = f"sqlite:///{shutil.copy(empty_database, tmp_path / 'mlflow.db')}"
        overrides = [*ENDLESS, f"tracking={{uri: '{uri}'}}", *extra]
        config = write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))
        command = [sys.executable, "-c", PROGRAM, "pack", "run", str(config), *options, *overrides]
        run = RunFolder(tmp_path / "runs" / tiny_config(images, tmp_path, *overrides).run_name)
        environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)
        processes.append(process)
        night = Night(process, run, uri, tmp_path / "log")
        wait_until(lambda: trains(night), night.log)
        return night

    yield start
    for process in processes:
        process.kill()
        process.wait()


def trains(night: Night) -> bool:
    assert night.process.poll() is None, night.log.read_text()
    return (
        night.run.manifest_path.exists()
        and len(night.run.member(night.run.specs()[0]).epochs()) > 1
        and Path(night.uri.removeprefix("sqlite:///")).exists()
        and set(states_so_far(night)) == {"pack", "member"}
    )


def states_so_far(night: Night) -> dict[str, str]:
    try:
        return night.states()
    except mlflow.MlflowException:
        return {}


def wait_until(what: Callable[[], bool], log: Path, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.2)


def gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def ends_in_order(night: Night, number: signal.Signals, send: Callable[[signal.Signals], None]) -> None:
    """Send a signal, and look at everything that must hold then."""
    below = night.below()
    assert below
    send(number)
    assert night.process.wait(timeout=60) == 130, night.log.read_text()
    said = night.log.read_text()
    assert f"{number.name}: saving what is under way; a second signal ends at once" in said
    assert said.rstrip().endswith("interrupted")
    assert "Traceback" not in said
    assert night.states() == {"pack": "KILLED", "member": "KILLED"}
    wait_until(lambda: gone(below), night.log, seconds=60)
    assert not is_locked(night.run.path)
    assert night.run.results() == {}
    checkpoints = list(night.run.member(night.run.specs()[0]).checkpoint_path.iterdir())
    assert checkpoints, "only the request to stop can have saved the member"


def test_ctrl_c_saves_the_member_and_closes_the_runs(begin: Begin) -> None:
    night = begin()
    ends_in_order(night, signal.SIGINT, night.as_a_terminal_does)


def test_sigterm_does_the_same(begin: Begin) -> None:
    """What ``ray job stop``, a scheduler or a container sends, to the command alone."""
    night = begin()
    ends_in_order(night, signal.SIGTERM, night.process.send_signal)


def test_the_second_signal_ends_at_once(begin: Begin) -> None:
    night = begin("training.progress_seconds=3600")  # so seldom would the member look whether it is to stop
    below = night.below()
    attempt = current_attempt(night.run.member(night.run.specs()[0]))
    assert attempt is not None
    assert attempt.pid in [process.pid for process in below]
    night.process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert night.process.poll() is None, "it is waiting for the member"
    night.process.send_signal(signal.SIGINT)
    assert night.process.wait(timeout=8) == 130
    wait_until(lambda: gone([one for one in below if one.pid == attempt.pid]), night.log, seconds=60)
    wait_until(lambda: night.states() == {"pack": "KILLED", "member": "KILLED"}, night.log, seconds=60)
    wait_until(lambda: gone(below), night.log, seconds=60)


@pytest.mark.ray
def test_ctrl_c_on_ray(begin: Begin) -> None:
    night = begin(options=())
    ends_in_order(night, signal.SIGINT, night.as_a_terminal_does)


@pytest.mark.ray
@pytest.mark.long
def test_the_second_signal_leaves_nothing_of_a_local_ray(begin: Begin) -> None:
    night = begin("training.progress_seconds=3600", options=())
    below = night.below()
    for _ in range(2):
        night.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert night.process.wait(timeout=8) == 130
    wait_until(lambda: gone(below), night.log, seconds=60)
    assert night.states() == {"pack": "KILLED", "member": "KILLED"}


HANGING = """
import os, signal, time
import sfora_ray.cli.signals as signals
from sfora_ray.cli.main import ending
signals._SECONDS_TO_END = 1.0
with ending():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    finally:
        time.sleep(60)
"""


def test_what_hangs_does_not_hold_the_process_up() -> None:
    started = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, timeout=50, check=False)
    assert ended.returncode == 130
    assert time.monotonic() - started < 30
    assert b"SIGTERM: saving what is under way" in ended.stderr
