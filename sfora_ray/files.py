"""Files that are either whole or absent: every write goes to a neighbour first and is then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import IO, Any

from sfora_ray.errors import InputError, StorageError

_BLOCK = 4096
_NO_SUCH_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` atomically: a reader sees the old file or the whole new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically; NaN and infinities are refused, for they are not JSON."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        InputError: the file is absent or is not JSON.
        StorageError: it is there, but its storage does not give it now.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (*_NO_SUCH_FILE, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a readable JSON file ({error}). Restore it or remove it.") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read now ({error}). Bring the storage back.") from error


def append_json_line(path: Path, value: Any) -> None:
    """Append one record to a ``.jsonl`` file, durably and whole: a line that does not fit on the disk leaves no trace.

    What a killed writer left after the last whole line is cut off first. One process appends at a time.
    """
    line = (json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as stream:
        end = _end_of_lines(stream)
        if end < stream.seek(0, os.SEEK_END):
            stream.truncate(end)
        try:
            written = stream.write(line)
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(end)
            raise
        if written != len(line):
            stream.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _end_of_lines(stream: IO[bytes]) -> int:
    """Return the offset after the last newline."""
    end = stream.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        stream.seek(start)
        found = stream.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def read_json_lines(path: Path) -> list[Any]:
    """Read the complete lines of a ``.jsonl`` file; an absent file has none, a torn last line is left out.

    Raises:
        InputError: a line is not JSON.
    """
    if not path.exists():
        return []
    values: list[Any] = []
    # Not splitlines: it also splits at U+2028, which JSON leaves in texts as it is.
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            values += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: not JSON ({error}). Restore the file or remove it.") from error
    return values


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
