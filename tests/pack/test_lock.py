"""The lock of a run folder, between real processes."""

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfora_ray.errors import BusyError, StorageError
from sfora_ray.pack.lock import LOCK_NAME, is_locked, lock_holder, run_lock

HOLD = """
import sys
from pathlib import Path
from sfora_ray.pack.lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_folder_is_locked_for_the_length_of_the_block(tmp_path: Path) -> None:
    path = tmp_path / "run"
    assert not is_locked(path)
    with run_lock(path):
        assert is_locked(path)
        holder = lock_holder(path)
        assert holder is not None
        assert (holder.host, holder.pid) == (socket.gethostname(), os.getpid())
    assert not is_locked(path)
    assert lock_holder(path) is None
    assert list(path.iterdir()) == []


def test_another_process_is_named(tmp_path: Path) -> None:
    with another_holder(tmp_path) as other:
        assert is_locked(tmp_path)
        with pytest.raises(BusyError) as caught, run_lock(tmp_path, patience_seconds=0):
            raise AssertionError("two holders")
        assert f"{tmp_path}: is being written by process {other.pid} on {socket.gethostname()} since " in str(
            caught.value
        )


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    with another_holder(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert not is_locked(tmp_path)
        with run_lock(tmp_path, patience_seconds=0):
            holder = lock_holder(tmp_path)
            assert holder is not None
            assert holder.pid == os.getpid()


def test_a_child_does_not_hold_it_on(tmp_path: Path) -> None:
    with run_lock(tmp_path):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert not is_locked(tmp_path)
    finally:
        child.kill()
        child.wait()


def test_patience_is_rewarded(tmp_path: Path) -> None:
    with another_holder(tmp_path) as other:
        threading.Timer(0.3, other.kill).start()
        started = time.monotonic()
        with run_lock(tmp_path, patience_seconds=30):
            assert 0.2 < time.monotonic() - started < 20


def test_many_take_turns(tmp_path: Path) -> None:
    """Each removes the file under which others may be waiting; still no two hold it at a time."""
    inside: list[int] = []
    seen: list[int] = []

    def take_turns() -> None:
        for _ in range(20):
            with run_lock(tmp_path, patience_seconds=60):
                inside.append(1)
                seen.append(len(inside))
                time.sleep(0.001)
                inside.pop()

    threads = [threading.Thread(target=take_turns) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 80


def test_an_error_frees_it(tmp_path: Path) -> None:
    with pytest.raises(KeyError), run_lock(tmp_path):
        raise KeyError
    assert not is_locked(tmp_path)


def test_a_file_that_is_not_ours_stays(tmp_path: Path) -> None:
    with run_lock(tmp_path):
        (tmp_path / LOCK_NAME).unlink()
        (tmp_path / LOCK_NAME).write_text("another's")
    assert (tmp_path / LOCK_NAME).read_text() == "another's"


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match=r"run\.lock: its file system knows no locks"), run_lock(tmp_path):
        raise AssertionError("no lock was there")
    assert not is_locked(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be opened for writing"), run_lock(tmp_path / "file" / "run"):
        raise AssertionError("no lock was there")


def test_looking_writes_nothing(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    assert lock_holder(tmp_path) is None
    assert not (tmp_path / LOCK_NAME).exists()
