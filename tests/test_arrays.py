"""Embedding tables on disk."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.errors import DataError

TABLE = EmbeddingTable(np.array(["a", "b"]), np.array([0, 1]), np.eye(2, dtype=np.float32))
COARSE = dataclasses.replace(TABLE, coarse_labels=np.array([3, 3]))


@pytest.mark.parametrize("table", [TABLE, COARSE])
def test_a_table_comes_back_as_it_was_saved(table: EmbeddingTable, tmp_path: Path) -> None:
    table.save(tmp_path / "table.npz")
    found = EmbeddingTable.load(tmp_path / "table.npz")
    assert np.array_equal(found.ids, table.ids)
    assert np.array_equal(found.labels, table.labels)
    assert np.array_equal(found.embeddings, table.embeddings)
    assert np.array_equal(found.coarse_labels, table.coarse_labels)  # type: ignore[arg-type]


def test_a_table_without_coarse_labels_is_the_file_it_always_was(tmp_path: Path) -> None:
    TABLE.save(tmp_path / "table.npz")
    with np.load(tmp_path / "table.npz") as arrays:
        assert arrays.files == ["ids", "labels", "embeddings"]


@pytest.mark.parametrize("coarse", [np.array([1.5, 2.5]), np.array(["x", "y"]), np.array([1])])
def test_coarse_labels_of_another_kind_or_number_are_refused(coarse: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    np.savez(path, ids=TABLE.ids, labels=TABLE.labels, embeddings=TABLE.embeddings, coarse_labels=coarse)
    with pytest.raises(DataError):
        EmbeddingTable.load(path)
