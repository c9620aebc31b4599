"""What a launcher writes into members' folders: a fault of the storage spoils the note, never the launcher.

A note that was lost costs words in a report. What a launcher knows in memory still counts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfora_ray.config.member import Cause, MemberResult, MemberSpec
from sfora_ray.errors import SforaError, StorageError
from sfora_ray.training.attempts import end_attempt
from sfora_ray.training.boundary import failed
from sfora_ray.training.member_folder import AttemptEvent, MemberFolder
from sfora_ray.training.patience import patiently

_log = logging.getLogger(__name__)

STOPPED_UNSAVED = "stopped before it could save"

_PATIENCE_SECONDS = 600.0
_SECONDS_BETWEEN_WORDS = 60.0


def note_end(folder: MemberFolder, earlier: int, cause: Cause, reason: str) -> None:
    """Record why an attempt ended, unless it said so itself; ``earlier`` is the number of events before it."""
    _if_possible(f"{folder.attempts_path}: the end of an attempt", lambda: _end(folder, earlier, cause, reason))


def note_unsaved(folder: MemberFolder, earlier: int) -> None:
    """Record, without patience, that an attempt was ended by us before it could save its state."""
    try:
        if folder.result() is None:
            _end(folder, earlier, "", STOPPED_UNSAVED)
    except (OSError, SforaError) as error:
        _log.warning("%s: the end of an attempt was not recorded (%s)", folder.path, error)


def note_result(folder: MemberFolder, result: MemberResult) -> None:
    """Write a member's result."""
    _if_possible(str(folder.result_path), lambda: folder.write_result(result))


def note_failure(spec: MemberSpec, folder: MemberFolder, cause: Cause, reason: str) -> None:
    """Write that a member has failed for good."""
    _if_possible(str(folder.result_path), lambda: folder.write_result(failed(spec, folder, cause, reason)))


def events_since(folder: MemberFolder, earlier: int = 0) -> list[AttemptEvent]:
    """Return the events after the first ``earlier``; none while the storage is away."""
    try:
        return folder.attempts()[earlier:]
    except (OSError, StorageError):
        return []


class Outage:
    """Storage that fails whoever looks into members' folders: passed over for some minutes, for the next look."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._said = 0.0

    @contextmanager
    def passed_over(self) -> Iterator[None]:
        """Log a fault of the storage within the block instead of raising it.

        Raises:
            StorageError: it has failed for ten minutes.
        """
        try:
            yield
        except (OSError, StorageError) as error:
            self._note(error)
        else:
            self._since = None

    def _note(self, error: Exception) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since, self._said = now, 0.0
        if now - self._since > _PATIENCE_SECONDS:
            raise StorageError(
                f"run folder: its storage has failed for {_PATIENCE_SECONDS:g} s, got '{error}'. "
                "Bring it back, then resume the pack."
            ) from error
        if now - self._said > _SECONDS_BETWEEN_WORDS or not self._said:
            self._said = now
            _log.warning("run folder: %s; looking again", error)


def _end(folder: MemberFolder, earlier: int, cause: Cause, reason: str) -> None:
    if any(event.event == "started" for event in folder.attempts()[earlier:]):
        end_attempt(folder, cause, reason)


def _if_possible(what: str, action: Callable[[], None]) -> None:
    try:
        patiently(what, action)
    except (OSError, StorageError) as error:
        _log.warning("%s; the pack goes on without this note", error)
