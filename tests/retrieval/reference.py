"""Values computed by the published programs."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parents[1] / "reference"


def load(name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of ``tests/reference/<name>.npz``."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}
