"""One process at a time writes a run folder.

The lock is the kernel's (``flock`` on ``run.lock``), which frees it when its holder dies, however that happens: nobody
has to remove anything after a crash. What stands in the file only tells people who holds it. Python opens files
close-on-exec, so that a process that the holder starts does not hold the lock on.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from sfora_ray.errors import BusyError, StorageError
from sfora_ray.options import Options

LOCK_NAME = "run.lock"
_SECONDS_BETWEEN_TRIES = 0.1
_TAKEN = (errno.EAGAIN, errno.EACCES)


class Holder(Options):
    """Who holds a lock."""

    host: str
    pid: int
    since: str
    """Local time, to the second."""

    def __str__(self) -> str:
        """Return the holder in words."""
        return f"process {self.pid} on {self.host} since {self.since}"


@contextmanager
def run_lock(path: Path, patience_seconds: float = 15.0) -> Iterator[None]:
    """Be the one process that writes the run folder ``path`` until the block ends; the folder is made if need be.

    Raises:
        BusyError: another process still writes it when patience is at its end.
        StorageError: the file cannot be opened, or its file system knows no locks.
    """
    descriptor = _take(path, patience_seconds)
    try:
        yield
    finally:
        with suppress(OSError):
            if _is_there(descriptor, path):  # not another's, where somebody has removed ours
                (path / LOCK_NAME).unlink()  # while it is held: see _is_there
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return whether some process, perhaps this one, writes the run folder ``path`` now; nothing is written."""
    try:
        descriptor = os.open(path / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _TAKEN  # any other error: no locks there, so nobody can hold one
    else:
        return False
    finally:
        os.close(descriptor)


def lock_holder(path: Path) -> Holder | None:
    """Return who writes the run folder ``path`` or was last seen to, or None if that is not known."""
    with suppress(OSError, ValueError):
        return Holder.model_validate_json((path / LOCK_NAME).read_bytes())
    return None


def _take(path: Path, patience_seconds: float) -> int:
    """Return a descriptor that holds the lock."""
    end = time.monotonic() + patience_seconds
    while True:
        descriptor = _open_to_write(path)
        try:
            if _try(descriptor, path) and _is_there(descriptor, path):
                _write(descriptor, _myself().model_dump_json())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= end:
            who = lock_holder(path) or "another process"
            raise BusyError(f"{path}: is being written by {who}. Wait until it has ended, or stop it.")
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _open_to_write(path: Path) -> int:
    try:
        path.mkdir(parents=True, exist_ok=True)
        return os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StorageError(
            f"{path / LOCK_NAME}: cannot be opened for writing ({error}). Make the folder writable."
        ) from error


def _is_there(descriptor: int, path: Path) -> bool:
    """Return whether the locked file is the one in the folder, not one that its holder has just removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), (path / LOCK_NAME).stat())
    except OSError:
        return False


def _try(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise StorageError(
            f"{path / LOCK_NAME}: its file system knows no locks, got {error}. "
            "Put the run folder where flock works: a local disk, NFS 4, Lustre mounted with `flock`."
        ) from error
    return True


def _myself() -> Holder:
    return Holder(
        host=socket.gethostname(), pid=os.getpid(), since=datetime.now().astimezone().isoformat(" ", "seconds")
    )


def _write(descriptor: int, text: str) -> None:
    """Replace what the file says; the lock does not depend on it, so a full disk is no matter."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
