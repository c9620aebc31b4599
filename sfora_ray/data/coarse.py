"""Coarse classes of a folder of class folders, from a CSV file such as Grocery's ``classes.csv``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import Field, field_validator

from sfora_ray.data.paths import below_root
from sfora_ray.errors import DataError
from sfora_ray.options import Options


class CoarseCsv(Options):
    """A file says which coarse class each class is of."""

    path: Path = Path("classes.csv")
    """CSV with a header; below ``root`` and relative to it."""
    class_column: str = Field("folder", min_length=1)
    """Column of the class folder's name."""
    coarse_column: str = Field("coarse_class", min_length=1)
    """Column of its coarse class; further columns are passed over."""

    _check_path = field_validator("path")(below_root)

    def coarse_of(self, names: Iterable[str], root: Path) -> dict[str, str]:
        """Return the coarse class of each of ``names``; other rows of the file are passed over.

        Raises:
            DataError: the file is unreadable, or a class has no row or two that differ.
        """
        path = root / self.path
        found = self._read(path)
        missing = [name for name in names if name not in found]
        if missing:
            raise DataError(
                f"{path}: every class folder needs a row, got none for {len(missing)} ({', '.join(missing[:5])}). "
                "Add them, or leave out `coarse`."
            )
        return found

    def _refuse_other_columns(self, path: Path, columns: Sequence[str]) -> None:
        named = {"class_column": self.class_column, "coarse_column": self.coarse_column}
        missing = {key: column for key, column in named.items() if column not in columns}
        if missing:
            keys = " and ".join(f"`data.coarse.{key}`" for key in missing)
            raise DataError(
                f"{path}: the header must have {' and '.join(map(repr, missing.values()))}, got "
                f"{', '.join(map(repr, columns)) or 'no column'}. Set {keys} to what the file has."
            )

    def _read(self, path: Path) -> dict[str, str]:
        try:
            with path.open(encoding="utf-8-sig", newline="") as stream:
                reader = csv.DictReader(stream)
                columns, rows = reader.fieldnames or (), list(reader)
        except (OSError, ValueError, csv.Error) as error:
            raise DataError(f"{path}: not a readable CSV file ({error}). Correct `coarse.path`.") from error
        self._refuse_other_columns(path, columns)
        found: dict[str, str] = {}
        for number, row in enumerate(rows, start=2):
            name, coarse = row.get(self.class_column), row.get(self.coarse_column)
            if not name or not coarse:
                raise DataError(
                    f"{path}, row {number}: {self.class_column} and {self.coarse_column} must be filled in, got "
                    f"{dict(row)}. Correct the row."
                )
            if found.setdefault(name, coarse) != coarse:
                raise DataError(
                    f"{path}, row {number}: a class is of one coarse class, got '{name}' in {found[name]} and "
                    f"{coarse}. Remove a row."
                )
        return found
