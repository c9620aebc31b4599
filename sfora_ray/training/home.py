"""Where a folder is at home: here, or in an object store of which it is the working copy.

Training and folding know local folders alone. What they have written they publish; what others have written they
refresh. In a folder that is at home here, both do nothing.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from sfora_ray.errors import BusyError, SforaError
from sfora_ray.storage import WorkingCopy, below, is_leased

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_WORDS = 60.0


class Home(Protocol):
    """What a folder's home does for whoever writes and reads there."""

    def place_of(self, path: Path) -> str:
        """Return where a folder is at home: an absolute path, or an address."""
        ...

    def publish(self) -> None:
        """Send home what has changed here.

        Raises:
            StorageError: the store does not answer or refuses.
        """
        ...

    def refresh(self) -> None:
        """Fetch what others have changed of the files that are read while members train.

        Raises:
            StorageError: the store does not answer or refuses.
        """
        ...

    def fetch_results(self) -> None:
        """Fetch what finished members have left: everything but checkpoints.

        Raises:
            StorageError: the store does not answer or refuses.
        """
        ...

    def is_written(self) -> bool:
        """Return whether a process, perhaps of another machine, writes the run there now.

        Raises:
            StorageError: the store does not answer or refuses.
        """
        ...


class Here:
    """The home of a folder that is no copy of anything."""

    def place_of(self, path: Path) -> str:
        """Return the folder's absolute path."""
        return str(path.absolute())

    def publish(self) -> None:
        """Do nothing: whatever was written is at home."""

    def refresh(self) -> None:
        """Do nothing: whoever else writes, writes here."""

    def fetch_results(self) -> None:
        """Do nothing."""

    def is_written(self) -> bool:
        """Return False: of a folder here, its lock tells."""
        return False


HERE: Home = Here()


class InStore:
    """The home of a working copy.

    Args:
        copy: the copy and its store.
        watched: patterns of the files that others change while members train.
        not_results: patterns of files that :meth:`fetch_results` leaves out.
        unsent: patterns of files that are never sent.
    """

    def __init__(
        self,
        copy: WorkingCopy,
        *,
        watched: Sequence[str],
        not_results: Sequence[str] = (),
        unsent: Sequence[str] = (),
    ) -> None:
        self.copy = copy
        self._watched = tuple(watched)
        self._not_results = tuple(not_results)
        self._unsent = tuple(unsent)
        self._is_lost = False

    def lose(self) -> None:
        """Note that another process writes there now: from here on whatever asks for the store is refused."""
        self._is_lost = True

    def place_of(self, path: Path) -> str:
        """Return the address of a folder that lies in the copy."""
        return below(self.copy.store.address, *path.absolute().relative_to(self.copy.folder.absolute()).parts)

    def publish(self) -> None:
        """Send what has changed."""
        self._refuse_if_lost()
        self.copy.push(leave_out=self._unsent)

    def refresh(self) -> None:
        """Fetch what others have changed of the watched files; what is not sent yet stays."""
        self._refuse_if_lost()
        self.copy.pull(only=self._watched, keep_unsent=True)

    def fetch_results(self) -> None:
        """Fetch everything but what is no result; what is not sent yet stays."""
        self._refuse_if_lost()
        self.copy.pull(leave_out=self._not_results, keep_unsent=True)

    def is_written(self) -> bool:
        """Return whether somebody holds the lease of the place."""
        return is_leased(self.copy.store)

    def _refuse_if_lost(self) -> None:
        if self._is_lost:
            raise BusyError(
                f"{self.copy.store.address}: another process has taken over this run while this one could not reach "
                "the store. Leave it to that one."
            )


@contextmanager
def repeating(name: str, action: Callable[[], None], every_seconds: float) -> Iterator[None]:
    """Do something again and again in a thread until the block ends; a store that is away is asked at the next turn."""
    stop = threading.Event()
    thread = threading.Thread(target=_repeat, args=(name, action, every_seconds, stop), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _repeat(name: str, action: Callable[[], None], every_seconds: float, stop: threading.Event) -> None:
    said = -math.inf
    while not stop.wait(every_seconds):
        try:
            action()
        except SforaError as error:
            if time.monotonic() - said > _SECONDS_BETWEEN_WORDS:
                said = time.monotonic()
                _log.warning("%s: %s", name, error)
