"""Where a worker's words go: a file in the member's folder, not the terminal."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path


@contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Send prints, warnings and log records of this process to the end of ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    root = logging.getLogger()
    with path.open("a", encoding="utf-8", buffering=1) as stream:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(handler)
        try:
            with redirect_stdout(stream), redirect_stderr(stream), warnings.catch_warnings():
                yield
        finally:
            root.removeHandler(handler)
