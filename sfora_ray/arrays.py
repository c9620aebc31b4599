"""Arrays that travel between rooms, and the shape legend.

Legend, used in every docstring and shape comment:
``B`` batch, ``N`` rows, ``D`` dimension of one member's embedding, ``C`` classes, ``M`` members,
``K`` neighbours, ``H``/``W`` image height and width.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfora_ray.errors import DataError
from sfora_ray.files import write_bytes

Float = NDArray[np.floating[Any]]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
Strings = NDArray[np.str_]


def l2_normalize(rows: Float) -> Float:
    """Divide each row of ``(N, D)`` by its Euclidean norm, in the input's own precision; zero rows stay zero."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, np.finfo(rows.dtype).tiny), dtype=rows.dtype)


@dataclass(frozen=True)
class EmbeddingTable:
    """The embeddings of one split by one member: row ``i`` belongs to ``ids[i]`` and ``labels[i]``.

    Attributes:
        ids: ``(N,)`` stable image ids, unique.
        labels: ``(N,)`` integer class labels.
        embeddings: ``(N, D)`` L2-normalised float32 rows.
        coarse_labels: ``(N,)`` integer coarse classes; None where the data set has none.
    """

    ids: Strings
    labels: Int64
    embeddings: Float32
    coarse_labels: Int64 | None = None

    def __post_init__(self) -> None:
        rows = len(self.ids)
        if self.embeddings.ndim != 2 or len(self.labels) != rows or len(self.embeddings) != rows:
            raise DataError(
                f"embedding table: ids, labels and embeddings must have the same rows, got {self.ids.shape}, "
                f"{self.labels.shape} and {self.embeddings.shape}. Write the table again from its member."
            )
        if self.coarse_labels is not None and self.coarse_labels.shape != (rows,):
            raise DataError(
                f"embedding table: every row needs a coarse label, got {self.coarse_labels.shape} for {rows} rows. "
                "Write the table again from its member."
            )

    def save(self, path: Path) -> None:
        """Write the table as ``.npz``, atomically and without pickles."""
        buffer = io.BytesIO()
        ids, labels, rows, coarse = self.ids, self.labels, self.embeddings, self.coarse_labels
        if coarse is None:
            np.savez(buffer, ids=ids, labels=labels, embeddings=rows)
        else:
            np.savez(buffer, ids=ids, labels=labels, embeddings=rows, coarse_labels=coarse)
        write_bytes(path, buffer.getvalue())

    @classmethod
    def load(cls, path: Path) -> EmbeddingTable:
        """Read a table written by :meth:`save`.

        Raises:
            DataError: the file is absent, damaged, or holds other arrays.
        """
        try:
            # Opened here, for NumPy forgets to close a file that turns out to be no archive.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                coarse = arrays.get("coarse_labels")
                table = cls(arrays["ids"], arrays["labels"], arrays["embeddings"], coarse)
            kinds = f"{table.ids.dtype.kind} {table.labels.dtype.kind} {table.embeddings.dtype}"
            if kinds != "U i float32" or (coarse is not None and coarse.dtype.kind != "i"):
                raise TypeError(f"ids, labels and embeddings must be of kind U, i and float32, got {kinds}")
            return table
        except DataError:
            raise
        except Exception as error:
            raise DataError(
                f"{path}: not a readable embedding table ({type(error).__name__}: {error}). "
                "Run `sfora-ray pack resume` on its run folder to make it again."
            ) from error
