"""Packs to compare, by any name they have: a run folder, an address in a store, an MLflow run, or a config."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from sfora_ray.comparison import Source
from sfora_ray.config.load import load_config
from sfora_ray.errors import InputError, RunFolderError, StorageError
from sfora_ray.options import Options
from sfora_ray.pack.run_folder import Manifest, RunFolder
from sfora_ray.pack.summary import Summary
from sfora_ray.tracking.artifacts import MANIFEST, SUMMARY, PackRecords, is_run_id, pack_records
from sfora_ray.workflows.homes import read_run

_CONFIGS = (".yaml", ".yml")

Record = TypeVar("Record", bound=Options)


def find_pack(place: str, tracking: str) -> Source:
    """Find a pack by what it was called; run ids are looked up in the tracker at ``tracking``.

    Raises:
        InputError: there is none of that name, or it has no summary yet.
        StorageError: its store does not answer.
    """
    if is_tracked(place):
        return _of_tracker(pack_records(tracking, place))
    if Path(place).suffix in _CONFIGS:
        return Source.of_folder(_run_of_config(Path(place)))
    return Source.of_folder(read_run(place, whole=True))


def is_tracked(place: str) -> bool:
    """Return whether a place is meant as an MLflow run: 32 hexadecimal digits that name no folder here."""
    return is_run_id(place) and not Path(place).exists()


def _run_of_config(path: Path) -> RunFolder:
    config = load_config(path)
    place = config.run_address or str(config.output_folder / config.run_name)
    try:
        return read_run(place, whole=True)
    except RunFolderError as error:
        raise RunFolderError(
            f"{path}: its pack must have been run, got no readable {place} ({error}) "
            f"Train it: sfora-ray pack run {path}"
        ) from None


def _of_tracker(records: PackRecords) -> Source:
    place = f"MLflow run {records.run}"
    manifest = _checked(Manifest, records.manifest, f"{place}: {MANIFEST}")
    folder = _folder_here(manifest)
    if folder is not None:
        return Source.of_folder(folder)
    return Source(place, None, manifest, _checked(Summary, records.summary, f"{place}: {SUMMARY}"))


def _folder_here(manifest: Manifest) -> RunFolder | None:
    """Return the run folder that a manifest tells of, if this machine sees it and it is of that very pack."""
    config = manifest.config
    name = f"{manifest.name}-{manifest.digest}"
    place = config.run_address or str(config.output_folder / name)
    with suppress(InputError, StorageError, OSError):
        run = read_run(place, whole=True)
        if run.manifest().digest == manifest.digest and run.summary_path.is_file():
            return run
    return None


def _checked(model: type[Record], values: Any, place: str) -> Record:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        inner = ".".join(str(part) for part in problem["loc"])
        raise InputError(
            f"{place}: {inner}: {problem['msg']}, got {repr(problem['input'])[:80]}. "
            "It was made by another version; compare its run folder."
        ) from None
