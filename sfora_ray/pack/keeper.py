"""A process that outlives the driver: no run may stay RUNNING because its driver was killed.

It waits for one byte on a pipe that only the driver holds. The byte is a goodbye; the end of the pipe without one means
that the driver vanished, whatever took it, or could not close the runs itself. Then, once nobody writes the run, here
or in its object store, the keeper closes what the tracker still shows as running, and holds the run folder's lock
meanwhile. While it waits it has imported the standard library alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfora_ray.pack.lock import Holder
    from sfora_ray.pack.run_folder import RunFolder
    from sfora_ray.storage.lease import Lease
    from sfora_ray.tracking import TrackingOptions

LOG_NAME = "keeper.log"
"""Written in the run folder, and only where there was something to do."""
_GOODBYE = b"."
_MOMENT_SECONDS = 2.0
_SECONDS_BETWEEN_TRIES = 5.0
_PATIENCE_SECONDS = 600.0
_SECONDS_TO_LEAVE = 5.0

_log = logging.getLogger(__name__)


@dataclass
class Keeper:
    """The driver's end of a keeper."""

    process: subprocess.Popen[bytes] | None
    _is_needed: bool = True

    def dismiss(self) -> None:
        """Say that the runs are closed; else the keeper closes them when the block has ended, however it ended."""
        self._is_needed = False

    def leave(self) -> None:
        """End the keeper, or leave it alone to close the runs."""
        if self.process is None or self.process.stdin is None:
            return
        with contextlib.suppress(OSError):  # it was killed: nobody is left to say goodbye to
            if not self._is_needed:
                self.process.stdin.write(_GOODBYE)
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        if not self._is_needed:
            _see_off(self.process)


@contextmanager
def kept(run: RunFolder) -> Iterator[Keeper]:
    """Have the runs of a pack closed even if this process is killed within the block, or leaves it undismissed."""
    with keeping(run.path, run.manifest().config.tracking, __name__) as keeper:
        yield keeper


@contextmanager
def keeping(path: Path, tracking: TrackingOptions, module: str) -> Iterator[Keeper]:
    """Have the runs of the folder ``path`` closed by a process that runs ``module``, unless nothing tracks them."""
    from sfora_ray.tracking import NoTrackingOptions

    keeper = Keeper(None if isinstance(tracking, NoTrackingOptions) else _start(path, module))
    try:
        yield keeper
    finally:
        keeper.leave()


def _start(path: Path, module: str) -> subprocess.Popen[bytes]:
    """Start the keeper in a session of its own, where neither Ctrl-C nor the end of a terminal reaches it."""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
    command = [sys.executable, "-m", module, str(path.absolute()), str(os.getpid())]
    return subprocess.Popen(
        command,
        bufsize=0,
        env=environment,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _see_off(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_SECONDS_TO_LEAVE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(path: Path, driver: int, close: Callable[[Path], bool] | None = None) -> None:
    """Wait for the driver's goodbye; without one, close the runs of the folder ``path``, a pack's by default."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of a job reaches all its processes, and the driver needs time
    if sys.stdin.buffer.read(1) == _GOODBYE:
        return
    time.sleep(_MOMENT_SECONDS)
    logging.basicConfig(filename=path / LOG_NAME, level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        close_when_free(path, driver, close=close)
    except Exception:
        _log.exception("the runs could not be closed; sfora-ray mlflow reconcile %s", path)


def close_when_free(
    path: Path,
    driver: int,
    patience_seconds: float = _PATIENCE_SECONDS,
    close: Callable[[Path], bool] | None = None,
) -> None:
    """Close the runs of a folder that nobody writes any more; leave them alone if another process has taken it on.

    Args:
        path: the run folder, or the working copy of a run in an object store.
        driver: process id of the driver on this machine.
        patience_seconds: how long a tracker or a store may be away.
        close: closes them and returns True, or False while some process writes the folder; a pack's by default.

    Raises:
        TrackerError: the tracker did not answer until patience was at its end.
        StorageError: the object store did not.
    """
    from sfora_ray.errors import StorageError, TrackerError

    end = time.monotonic() + patience_seconds
    while True:
        try:
            if _taken_on(path, driver) or (close or _closed)(path):
                return
        except (StorageError, TrackerError) as error:
            _log.info("%s", error)
            if time.monotonic() > end:
                raise
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _taken_on(path: Path, driver: int) -> bool:
    """Return whether a process other than the driver writes the run."""
    holder = _writer(path)
    if holder is None or (holder.host, holder.pid) == (socket.gethostname(), driver):
        return False
    _log.info("%s goes on with the pack; nothing is closed", holder)
    return True


def _writer(path: Path) -> Holder | Lease | None:
    """Return who writes the run; of one in an object store its lease tells, for readers lock a working copy too."""
    from sfora_ray.pack.lock import is_locked, lock_holder
    from sfora_ray.storage import ObjectStore, WorkingCopy, is_leased, lease_holder

    origin = WorkingCopy.origin(path)
    if not origin:
        return lock_holder(path) if is_locked(path) else None
    store = ObjectStore(origin)
    return lease_holder(store) if is_leased(store) else None


def _closed(path: Path) -> bool:
    """Close the runs unless some process writes the run; return whether they are closed."""
    from sfora_ray.errors import BusyError
    from sfora_ray.pack.abandoned import close_abandoned
    from sfora_ray.pack.lock import run_lock

    run = _open(path)
    tracker = run.manifest().config.tracking.build()
    tracker.check()  # before the lock: it imports for seconds, and waits for a server that is away
    try:
        with run_lock(path, patience_seconds=0):
            closed = close_abandoned(run, tracker)
    except BusyError:
        return False
    for one in closed:
        _log.info("closed %s as %s: %s", one.name, one.status, one.reason)
    return True


def _open(path: Path) -> RunFolder:
    from sfora_ray.pack.run_folder import RunFolder
    from sfora_ray.storage import ObjectStore, WorkingCopy
    from sfora_ray.training.home import HERE, InStore

    origin = WorkingCopy.origin(path)
    home = InStore(WorkingCopy(path, ObjectStore(origin)), watched=()) if origin else HERE
    return RunFolder.open(path, home)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
