"""Reference values in `tests/reference/*.npz`: keys are `<case>/<kind>/<name>`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

FOLDER = Path(__file__).parents[1] / "reference"


def load_case(file: str, case: str) -> dict[str, Any]:
    """Read one case; keys lose the case's name."""
    with np.load(FOLDER / f"{file}.npz", allow_pickle=False) as arrays:
        return {key.removeprefix(f"{case}/"): arrays[key] for key in arrays.files if key.startswith(f"{case}/")}


def tensor(case: dict[str, Any], key: str, *, grad: bool = False) -> Tensor:
    """Return one array as a leaf tensor."""
    return torch.from_numpy(np.array(case[key])).requires_grad_(grad)


def assert_close(actual: Tensor, expected: Any, *, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    """Compare with a reference value in its own precision."""
    torch.testing.assert_close(
        actual.detach(), torch.as_tensor(np.asarray(expected)).to(actual.dtype), rtol=rtol, atol=atol
    )


def unit(*degrees: float) -> Tensor:
    """Return `(N, 2)` unit rows at these angles, float32."""
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1).float()
