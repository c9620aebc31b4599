"""Real data and schemas that tests read where they are at hand; nothing of them is copied into the project."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("SFORA_SHARED", Path(__file__).parents[2] / "shared"))

needs_shared = pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="no real data: set SFORA_SHARED to the folder that holds data/"
)
