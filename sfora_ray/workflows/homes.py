"""Runs by their place: a folder, or an address in an object store with a working copy on this machine."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import BusyError, RunFolderError, SforaError
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.run_folder import Manifest, RunFolder
from sfora_ray.storage import ObjectStore, WorkingCopy, bucket_and_prefix, held_lease, is_address
from sfora_ray.training.home import Home, InStore, repeating

_SECONDS_BETWEEN_SENDS = 1.0
_SECONDS_BETWEEN_LOOKS = 3.0
_PATIENCE = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0, 64.0)
_SILENCE_SECONDS = 10.0

_ATTEMPTS = "members/*/attempts.jsonl"
_WATCHED = ("members/*/epochs.jsonl", "members/*/progress.json", "members/*/result.json", _ATTEMPTS)
_NOBODY_READS = ("members/*/checkpoint/*", "members/*/ray/*")
_LARGE = ("members/*/embeddings.*", "members/*/model.safetensors")
_WORKERS_WRITE = (*_NOBODY_READS, *_LARGE, "members/*/epochs.jsonl", "members/*/worker*.log")


@contextmanager
def new_run(config: PackConfig) -> Iterator[RunFolder]:
    """Give the folder that a pack with this configuration has; it may be there already.

    In an object store it is this process's alone until the block ends, and then everything is sent.

    Raises:
        BusyError: another process writes the run in the store.
        StorageError: the store does not answer or refuses.
    """
    folder = RunFolder.of(config)
    if not config.run_address:
        yield folder
        return
    with _written(config.run_address, folder.path) as home:
        yield RunFolder(folder.path, home)


@contextmanager
def written_run(place: Path | str) -> Iterator[RunFolder]:
    """Open a run to write it; in an object store it is this process's alone until the block ends.

    Raises:
        RunFolderError: there is none.
        BusyError: another process writes the run in the store.
        StorageError: the store does not answer or refuses.
    """
    address = _address_of(place)
    if not address:
        yield RunFolder.open(Path(place))
        return
    path = _copy_path(address)
    with _written(address, path) as home:
        yield RunFolder.open(path, home)


def read_run(place: Path | str, *, whole: bool = False) -> RunFolder:
    """Open a run to read it, as it is in the store now.

    Args:
        place: path or address.
        whole: whether embeddings and models are wanted too.

    Raises:
        RunFolderError: there is none.
        StorageError: the store does not answer or refuses.
    """
    address = _address_of(place)
    if not address:
        return RunFolder.open(Path(place))
    path = _copy_path(address)
    home = _home(address, path)
    # A driver on this machine keeps the copy fresh itself.
    with suppress(BusyError):
        with run_lock(path, patience_seconds=0):
            home.copy.pull(leave_out=(*_NOBODY_READS, *_LARGE))
        if whole:
            # Without the lock, or a driver would wait for it: no driver writes these, it fetches them as they are.
            home.copy.pull(only=_LARGE)
    return RunFolder.open(path, home)


def _address_of(place: Path | str) -> str:
    """Return the address of a run, or an empty string if it is a folder; a working copy is the run that it copies."""
    text = str(place)
    return text if is_address(text) else WorkingCopy.origin(Path(place))


def _copy_path(address: str) -> Path:
    """Return where the working copy of an existing run lies: below the `cache_dir` of its own config."""
    content = ObjectStore(address).get("manifest.json")
    if content is None:
        raise RunFolderError(f"{address}: no run here (no manifest.json). Give the address that `pack run` printed.")
    try:
        config = Manifest.model_validate(json.loads(content)).config
    except (ValueError, ValidationError) as error:
        raise RunFolderError(f"{address}/manifest.json: not readable ({type(error).__name__}). Restore it.") from None
    return config.cache_dir.expanduser() / "stores" / "runs" / bucket_and_prefix(address)


@contextmanager
def _written(address: str, path: Path) -> Iterator[Home]:
    ObjectStore(address).check()
    # A night's pack outlasts a store that is away for minutes: its members wait as well.
    home = _home(address, path, ObjectStore(address, pauses_seconds=_PATIENCE, silence_seconds=_SILENCE_SECONDS))
    leased = ObjectStore(address, silence_seconds=_SILENCE_SECONDS)
    with held_lease(leased, on_loss=home.lose):
        try:
            _take_up(home)
            with repeating("run in the store", _Turns(home).turn, _SECONDS_BETWEEN_SENDS), _sent(home):
                yield home
        except BaseException:
            leased.hurry()
            raise


@contextmanager
def _sent(home: InStore) -> Iterator[None]:
    """Send everything when the block ends; after an error without patience, of which other threads lose theirs too."""
    try:
        yield
        home.publish()
    except BaseException:
        home.copy.store.hurry()
        with suppress(SforaError):
            home.publish()
        raise


def _take_up(home: InStore) -> None:
    """Make the working copy what the store has, but for what is large."""
    if home.copy.store.get("manifest.json") is None:
        shutil.rmtree(home.copy.folder, ignore_errors=True)  # of a run that is no more
    home.copy.adopt()
    home.copy.pull(leave_out=(*_NOBODY_READS, *_LARGE))


def _home(address: str, path: Path, store: ObjectStore | None = None) -> InStore:
    copy = WorkingCopy(path, store or ObjectStore(address), shared=[_ATTEMPTS])
    return InStore(copy, watched=_WATCHED, not_results=_NOBODY_READS, unsent=_WORKERS_WRITE)


class _Turns:
    """What the thread of a driver does: sends at once, looks now and then."""

    def __init__(self, home: InStore) -> None:
        self._home = home
        self._next_look = 0.0

    def turn(self) -> None:
        """Send what has changed here; every few seconds, fetch what members have written."""
        self._home.publish()
        if time.monotonic() >= self._next_look:
            self._home.refresh()
            self._next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
