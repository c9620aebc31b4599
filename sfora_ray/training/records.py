"""Records read back from a run folder: of the right types, or one error that names the file and the place in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from sfora_ray.errors import RunFolderError
from sfora_ray.files import read_json, read_json_lines
from sfora_ray.options import Options

_MOST_SHOWN = 80

Record = TypeVar("Record", bound=Options)


def read_record(model: type[Record], path: Path) -> Record:
    """Read a JSON file that holds one record.

    Raises:
        InputError: it is absent, not JSON, or holds something else.
    """
    return _checked(model, read_json(path), str(path))


def read_records(model: type[Record], path: Path) -> list[Record]:
    """Read a ``.jsonl`` file of records; an absent file has none, a torn last line is left out.

    Raises:
        InputError: a line is not JSON or holds something else; names the line.
    """
    lines = enumerate(read_json_lines(path), start=1)
    return [_checked(model, line, f"{path}, line {number}") for number, line in lines]


def _checked(model: type[Record], values: Any, place: str) -> Record:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        inner = ".".join(str(part) for part in problem["loc"])
        where = f"{place}: {inner}" if inner else place
        raise RunFolderError(
            f"{where}: {problem['msg']}, got {repr(problem['input'])[:_MOST_SHOWN]}. "
            "The folder was made by another version or changed by hand; restore it."
        ) from None
