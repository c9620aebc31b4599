"""A fitted fold: one matrix, with or without a mean, then L2. One form, one file, one way to apply it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sfora_ray.arrays import Float, Float32, Float64, l2_normalize
from sfora_ray.errors import DataError
from sfora_ray.files import write_bytes
from sfora_ray.folds.moments import CHUNK_ROWS, stack_rows

FittedOn = Literal["none", "train", "test"]
FORMAT = "sfora_ray fold 1"


@dataclass(frozen=True)
class FittedFold:
    """The map ``x -> normalise((x - mean) @ matrix)`` of the members' unit rows side by side.

    Attributes:
        name: the fold's canonical name, such as ``uncentred-256``.
        matrix: ``(M*D, K)`` float32.
        mean: ``(M*D,)`` float32, or None.
        fitted_on: ``none`` (nothing learnt), ``train`` classes, or ``test`` (transductive: an upper bound).
        num_members: M.
        member_dim: D.
    """

    name: str
    matrix: Float32
    mean: Float32 | None
    fitted_on: FittedOn
    num_members: int
    member_dim: int

    @classmethod
    def of(
        cls,
        name: str,
        matrix: Float64,
        *,
        fitted_on: FittedOn,
        num_members: int,
        member_dim: int,
        mean: Float64 | None = None,
    ) -> FittedFold:
        """Round a map computed in float64 to float32, the precision of embeddings."""
        centre = None if mean is None else mean.astype(np.float32)
        return cls(name, matrix.astype(np.float32), centre, fitted_on, num_members, member_dim)

    @property
    def dim(self) -> int:
        """Width of a folded row."""
        return int(self.matrix.shape[1])

    def transform(self, blocks: Sequence[Float], chunk_rows: int = CHUNK_ROWS) -> Float32:
        """Return ``(N, K)`` float32 unit rows of ``M`` blocks ``(N, D)``.

        Raises:
            DataError: other members or widths than the fold was fitted for.
        """
        shapes = [np.shape(block) for block in blocks]
        if len(set(shapes)) != 1 or len(shapes) != self.num_members or shapes[0][1:] != (self.member_dim,):
            raise DataError(
                f"fold {self.name}: fitted for {self.num_members} members of width {self.member_dim}, got "
                f"blocks {shapes}. Pass the same members in the same order."
            )
        folded = np.empty((shapes[0][0], self.dim), np.float32)
        for start in range(0, len(folded), chunk_rows):
            rows = stack_rows(blocks, start, start + chunk_rows).astype(np.float32)
            centred = rows if self.mean is None else rows - self.mean
            folded[start : start + chunk_rows] = l2_normalize(self._project(centred))
        return folded

    def _project(self, rows: Float32) -> Float32:
        # The concatenation is its rows as they are: no product with an identity.
        return rows if self.name == "concat" else rows @ self.matrix

    def save(self, path: Path) -> None:
        """Write the map as safetensors, atomically."""
        tensors = {"matrix": np.ascontiguousarray(self.matrix)}
        if self.mean is not None:
            tensors["mean"] = np.ascontiguousarray(self.mean)
        facts = {
            "format": FORMAT,
            "name": self.name,
            "fitted_on": self.fitted_on,
            "num_members": self.num_members,
            "member_dim": self.member_dim,
        }
        # One entry, for safetensors writes several in an order that changes from call to call.
        write_bytes(path, save(tensors, {"fold": json.dumps(facts)}))

    @classmethod
    def load(cls, path: Path) -> FittedFold:
        """Read a map written by :meth:`save`.

        Raises:
            DataError: the file is absent, truncated, or holds something else.
        """
        try:
            with safe_open(str(path), framework="numpy") as file:
                facts = json.loads(file.metadata()["fold"])
                _refuse_other_format(facts.pop("format"))
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            return cls(matrix=tensors["matrix"], mean=tensors.get("mean"), **facts)
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}: not a readable fold ({type(error).__name__}: {error}). "
                "Fold the pack again with `sfora-ray fold`."
            ) from error


def _refuse_other_format(given: str) -> None:
    if given != FORMAT:
        raise ValueError(f"format must be '{FORMAT}', got '{given}'")
