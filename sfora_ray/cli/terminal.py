"""The terminal that commands print to."""

from __future__ import annotations

import sys

from rich.console import Console

_FILE_WIDTH = 140


def make_console() -> Console:
    """Return a console as wide as the terminal, or wide enough for every column where the output is a file."""
    return Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)
