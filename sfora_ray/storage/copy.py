"""Carries files between a working copy, which is a local folder, and a place in an object store.

Objects are put in an order in which a reader never sees a record before what it names, and deleted in the reverse
one. What a pull has fetched stands in a ledger beside it, so that the next pull fetches only what has changed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from sfora_ray.errors import InputError, StorageError
from sfora_ray.files import read_json, write_bytes, write_json
from sfora_ray.options import Options
from sfora_ray.storage.objects import ObjectFacts, ObjectStore

LEDGER_NAME = ".ledger.json"

_RECORDS = ("loop.json", "summary.json", "result.json")
"""Files that name others, each after those that it names."""

_LOCKS = "*.lock"
# Stores tell the time of an object to the second: within so long, a second change of the same size looks like none.
_BLUR_NS = 2_000_000_000


class _Entry(Options):
    """One file as it was fetched: the object's facts, and the file's own."""

    size: int
    time_ns: int
    file_time_ns: int
    settled: bool
    """Whether a later change of the object would show in its facts."""


class _Ledger(Options):
    """``.ledger.json``: what was fetched from where."""

    address: str
    entries: dict[str, _Entry] = {}


@dataclass(frozen=True)
class _Stamp:
    """By what a changed file is told from one that was sent."""

    size: int
    time_ns: int


class WorkingCopy:
    """A local folder and the place in a store that it is a copy of.

    Args:
        folder: the local folder; it need not exist.
        store: the place in the store.
        shared: patterns of files of lines to which several working copies append; they are joined line by line, while
            of all other files whoever wrote last has the word.

    Patterns are those of :mod:`fnmatch` on names relative to the folder, where ``*`` reaches over slashes too. Names
    of which any part starts with a dot, locks and links are nobody else's business: they are neither sent nor fetched.
    """

    def __init__(self, folder: Path, store: ObjectStore, *, shared: Sequence[str] = ()) -> None:
        self.folder = folder
        self.store = store
        self._shared = tuple(shared)
        self._sent: dict[str, _Stamp] = {}
        self._turn = threading.RLock()

    @staticmethod
    def origin(folder: Path) -> str:
        """Return the address of which ``folder`` is a working copy, or an empty string if it is none."""
        ledger = _read_ledger(folder)
        return "" if ledger is None else ledger.address

    def adopt(self) -> None:
        """Make the folder, and note in it what it is a copy of.

        Raises:
            StorageError: it cannot be written.
        """
        self._write_ledger(self._entries())

    def push(self, *, only: Sequence[str] = ("*",), leave_out: Sequence[str] = ()) -> int:
        """Send what has changed here since the last push or pull of this object, and delete what has gone.

        Args:
            only: patterns of the files that are looked at.
            leave_out: patterns of files that are not.

        Returns:
            How many objects were written or deleted.

        Raises:
            StorageError: the store does not answer or refuses.
        """
        with self._turn:
            here = {name: stamp for name, stamp in self._files().items() if _in_scope(name, only, leave_out)}
            changed = [name for name in sorted(here, key=_rank) if self._sent.get(name) != here[name]]
            for name in changed:
                self._send(name)
            gone = [name for name in self._sent if name not in here and _in_scope(name, only, leave_out)]
            for name in sorted(gone, key=_rank, reverse=True):
                if (self.folder / name).exists():
                    continue
                self.store.delete(name)
                del self._sent[name]
            return len(changed) + len(gone)

    def pull(self, *, only: Sequence[str] = ("*",), leave_out: Sequence[str] = (), keep_unsent: bool = False) -> int:
        """Make the files here what the store has: fetch what differs, delete what the store does not have.

        Args:
            only: patterns of the files that are looked at.
            leave_out: patterns of files that are not.
            keep_unsent: leave alone what was changed here since the last push or pull of this object. Without it the
                store has the word on every file, as it must when a working copy of earlier days is taken up.

        Returns:
            How many files were written or deleted.

        Raises:
            InputError: an object's name leads out of the folder; nothing was written.
            StorageError: the store does not answer or refuses, or a file cannot be written.
        """
        with self._turn:
            objects, entries = self._listing(), dict(self._entries())
            before = dict(entries)
            settled_before = max((facts.time_ns for facts in objects.values()), default=0) - _BLUR_NS
            changed = 0
            for name in sorted(objects.keys() | self._files().keys(), key=_rank):
                if not _in_scope(name, only, leave_out) or (keep_unsent and self._is_unsent(name)):
                    continue
                facts = objects.get(name)
                if facts is None:
                    changed += self._drop(name, entries)
                elif not self._is_fetched(name, facts, entries.get(name)):
                    changed += self._fetch(name, keep_unsent)
                    entries[name] = self._entry(name, facts, settled_before)
            if entries != before:
                self._write_ledger(entries)
            return changed

    def _is_unsent(self, name: str) -> bool:
        return not self._is_shared(name) and _stamp(self.folder / name) != self._sent.get(name)

    def _drop(self, name: str, entries: dict[str, _Entry]) -> int:
        """Delete a file that the store does not have; return 1 if that changed anything."""
        if self._is_shared(name):
            return 0  # its lines are sent by the next push
        (self.folder / name).unlink(missing_ok=True)
        self._sent.pop(name, None)
        entries.pop(name, None)
        return 1

    def _send(self, name: str) -> None:
        try:
            with (self.folder / name).open("rb") as stream:
                # Before the content: what is appended in between is sent once more by the next push.
                facts = os.fstat(stream.fileno())
                content = stream.read()
        except FileNotFoundError:
            return
        if self._is_shared(name):
            there = _whole_lines(self.store.get(name) or b"")
            content = b"".join([*there, *_missing(there, _whole_lines(content))])
        self.store.put(name, content)
        self._sent[name] = _Stamp(facts.st_size, facts.st_mtime_ns)

    def _fetch(self, name: str, keep_unsent: bool) -> int:
        """Write one file as the store has it; return 1 if that changed it."""
        content = self.store.get(name)
        if content is None or (keep_unsent and self._is_unsent(name)):
            return 0
        path = self.folder / name
        try:
            if self._is_shared(name):
                return self._join(name, content)
            if path.is_file() and path.read_bytes() == content:
                changed = 0
            else:
                write_bytes(path, content)
                changed = 1
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
            raise InputError(
                f"{self.store.address}: '{name}' is both an object and a folder of objects. Remove one of them."
            ) from error
        except OSError as error:
            raise StorageError(
                f"{path}: cannot be written ({error}). Free space, or choose another cache_dir."
            ) from error
        stamp = _stamp(path)
        if stamp is not None:
            self._sent[name] = stamp
        return changed

    def _join(self, name: str, content: bytes) -> int:
        """Append lines that others have added; lines that only this copy has stay and are sent by the next push."""
        path = self.folder / name
        here = _whole_lines(path.read_bytes()) if path.is_file() else []
        there = _whole_lines(content)
        missing = _missing(here, there)
        if missing:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab", buffering=0) as stream:
                stream.write(b"".join(missing))
        stamp = _stamp(path)
        if stamp is not None and not _missing(there, here):
            self._sent[name] = stamp
        return int(bool(missing))

    def _is_fetched(self, name: str, facts: ObjectFacts, entry: _Entry | None) -> bool:
        """Return whether the file here is the object there; what it then is needs no sending either."""
        stamp = _stamp(self.folder / name)
        if entry is None or stamp is None or not entry.settled:
            return False
        same = (entry.size, entry.time_ns) == (facts.size, facts.time_ns)
        if same and stamp == _Stamp(entry.size, entry.file_time_ns):
            self._sent[name] = stamp
            return True
        return False

    def _entry(self, name: str, facts: ObjectFacts, settled_before: int) -> _Entry:
        stamp = _stamp(self.folder / name)
        return _Entry(
            size=facts.size,
            time_ns=facts.time_ns,
            file_time_ns=stamp.time_ns if stamp else 0,
            settled=facts.time_ns < settled_before and not self._is_shared(name),
        )

    def _listing(self) -> dict[str, ObjectFacts]:
        root = self.folder.resolve()
        found = self.store.listing()
        for name in found:
            fault = _fault_of_name(name, root)
            if fault:
                raise InputError(
                    f"{self.store.address}: an object's name {fault}, got {name!r}. No pack put it there: remove it."
                )
        return found

    def _files(self) -> dict[str, _Stamp]:
        found: dict[str, _Stamp] = {}
        for parent, folders, files in os.walk(self.folder):
            folders[:] = [folder for folder in folders if not folder.startswith(".")]
            for file in files:
                path = Path(parent, file)
                name = path.relative_to(self.folder).as_posix()
                stamp = _stamp(path)
                if stamp is not None and not _is_private(name) and not path.is_symlink():
                    found[name] = stamp
        return found

    def _is_shared(self, name: str) -> bool:
        return _matches(name, self._shared)

    def _entries(self) -> Mapping[str, _Entry]:
        ledger = _read_ledger(self.folder)
        # Absent, damaged or of another place: everything is fetched again.
        return {} if ledger is None or ledger.address != self.store.address else ledger.entries

    def _write_ledger(self, entries: Mapping[str, _Entry]) -> None:
        ledger = _Ledger(address=self.store.address, entries=dict(sorted(entries.items())))
        try:
            write_json(self.folder / LEDGER_NAME, ledger.model_dump(mode="json"))
        except OSError as error:
            raise StorageError(
                f"{self.folder / LEDGER_NAME}: cannot be written ({error}). Free space, or choose another cache_dir."
            ) from error


def _read_ledger(folder: Path) -> _Ledger | None:
    try:
        return _Ledger.model_validate(read_json(folder / LEDGER_NAME))
    except (InputError, ValueError):
        return None


def _stamp(path: Path) -> _Stamp | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return _Stamp(facts.st_size, facts.st_mtime_ns)


def _rank(name: str) -> tuple[int, str]:
    """Return the place of a name in the order of sending."""
    last = name.rpartition("/")[2]
    return (_RECORDS.index(last) + 1 if last in _RECORDS else 0, name)


def _in_scope(name: str, only: Sequence[str], leave_out: Sequence[str]) -> bool:
    return not _is_private(name) and _matches(name, only) and not _matches(name, leave_out)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_private(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/")) or fnmatchcase(name, _LOCKS) or name == "run.lease"


def _fault_of_name(name: str, root: Path) -> str:
    """Return what is wrong with an object's name as that of a file below ``root``."""
    parts = name.split("/")
    if name.startswith("/") or "" in parts:
        return "is absolute or has an empty part"
    if ".." in parts or "." in parts:
        return "has a part '.' or '..'"
    if "\\" in name or any(not character.isprintable() for character in name):
        return "has a backslash or a control character"
    if not (root / PurePosixPath(name)).resolve().is_relative_to(root):
        return "leads out of the working copy through a link there"
    return ""


def _whole_lines(content: bytes) -> list[bytes]:
    complete = content[: content.rfind(b"\n") + 1]
    return [line for line in complete.splitlines(keepends=True) if line.strip()]


def _missing(there: Sequence[bytes], lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines that are not there yet."""
    known = set(there)
    return [line for line in lines if line not in known]
