"""Names in lists and archives that come from elsewhere: they may only lead downwards."""

from __future__ import annotations

from pathlib import Path, PurePosixPath


def is_below(name: str) -> bool:
    """Return whether a path is relative and stays below the folder it starts in, on any system."""
    path = PurePosixPath(name)
    odd = "\\" in name or "\0" in name or name[1:2] == ":"
    return bool(path.parts) and not odd and not path.is_absolute() and ".." not in path.parts


def below_root(path: Path) -> Path:
    """Return ``path`` as it is, for an option that names a file below ``root``.

    Raises:
        ValueError: it is absolute or leads upwards.
    """
    if not is_below(path.as_posix()):
        raise ValueError("must be a relative path below `root`, without '..'")
    return path
