"""Names in lists and archives that come from elsewhere: they may only lead downwards."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_below(name: str) -> bool:
    """Return whether a path is relative and stays below the folder it starts in, on any system."""
    path = PurePosixPath(name)
    odd = "\\" in name or "\0" in name or name[1:2] == ":"
    return bool(path.parts) and not odd and not path.is_absolute() and ".." not in path.parts
