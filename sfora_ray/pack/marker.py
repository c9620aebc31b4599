"""A marker in a folder: it proves that the folder can be written, and lets another machine show that it sees the same.

A path that exists on two machines may still be two folders. Only what one writes and the other reads tells them apart.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sfora_ray.errors import RunFolderError
from sfora_ray.files import write_text

_CALL = "call"
# A network file system may show a new file a moment later than it was written.
PATIENCE_SECONDS = 3.0
_SECONDS_BETWEEN_LOOKS = 0.1


@dataclass(frozen=True)
class Marker:
    """A folder of its own below the marked one, the random text that lies there, and how long one looks for a file."""

    place: Path
    token: str
    patience_seconds: float = PATIENCE_SECONDS

    def replied(self, name: str) -> bool:
        """Return whether :func:`reply` under this name has arrived here."""
        try:
            return _read_patiently(self.place / name, self.patience_seconds) == self.token
        except OSError:
            return False


@contextmanager
def marked(folder: Path, *, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[Marker]:
    """Mark a folder for the length of the block; it is made if need be, and nothing stays that was not there before.

    Raises:
        RunFolderError: nothing can be written there.
    """
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    marker = Marker(folder / f".probe-{secrets.token_hex(6)}", secrets.token_hex(16), patience_seconds)
    try:
        try:
            write_text(marker.place / _CALL, marker.token)
        except OSError as error:
            raise RunFolderError(
                f"{folder}: run folders cannot be written here, got '{error}'. "
                "Make it writable or choose another `output`."
            ) from error
        yield marker
    finally:
        shutil.rmtree(marker.place, ignore_errors=True)
        for path in absent:
            with suppress(OSError):
                path.rmdir()


def reply(marker: Marker, name: str) -> str:
    """Answer a marker from another machine; returns what is wrong there, or an empty string."""
    try:
        if _read_patiently(marker.place / _CALL, marker.patience_seconds) != marker.token:
            return "reads something else there than was written"
        write_text(marker.place / name, marker.token)
    except FileNotFoundError:
        return "does not see what was written there: the path leads to a folder of its own, or nowhere"
    except OSError as error:
        return f"cannot write there ({error})"
    return ""


def _read_patiently(path: Path, seconds: float) -> str:
    end = time.monotonic() + seconds
    while True:
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            if time.monotonic() >= end:
                raise
            time.sleep(_SECONDS_BETWEEN_LOOKS)
