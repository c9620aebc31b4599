"""The folder of a member as its workers see it: itself, or a working copy of a place in an object store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.storage import ObjectStore, WorkingCopy, bucket_and_prefix, is_address
from sfora_ray.training.home import InStore, repeating
from sfora_ray.training.member_folder import MemberFolder

_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_BETWEEN_WORDS = 10.0
_OF_RAY_TRAIN = "ray/*"
_MADE_AT_THE_END = ("model.safetensors", "embeddings.*")


@contextmanager
def member_folder(place: str, spec: MemberSpec, *, rank: int = 0) -> Iterator[MemberFolder]:
    """Give a worker the folder to train in, and keep it and its home in step until the block ends.

    At the start a working copy is what the store has, checkpoints and all, whatever lay there before. Meanwhile a
    thread looks for a request to stop and for newer attempts, and tells how far the member is. At the end everything
    is sent, the result last. Workers other than the first send nothing.

    Args:
        place: path or address of the member's folder.
        spec: the member; its `cache_dir` holds the working copy.
        rank: which of the member's workers this is.

    Raises:
        StorageError: the store does not answer or refuses.
    """
    if not is_address(place):
        yield MemberFolder(Path(place))
        return
    path = spec.config.cache_dir.expanduser() / "stores" / "members" / bucket_and_prefix(place) / f"rank-{rank}"
    names = MemberFolder(path)
    stop, attempts = names.stop_path.name, names.attempts_path.name
    copy = WorkingCopy(path, ObjectStore(place), shared=[attempts])
    copy.pull(leave_out=_MADE_AT_THE_END)
    for pattern in _MADE_AT_THE_END:
        for stale in path.glob(pattern):
            stale.unlink()
    if rank > 0:
        yield names
        return
    home = InStore(copy, watched=[attempts], unsent=[stop, _OF_RAY_TRAIN])
    folder = MemberFolder(path, home)
    with repeating("working copy", _Looks(folder, copy).turn, _SECONDS_BETWEEN_LOOKS):
        try:
            yield folder
        except BaseException:
            copy.store.hurry()
            with suppress(SforaError):
                home.publish()
            raise
    home.publish()


class _Looks:
    """What the thread of a worker does."""

    def __init__(self, folder: MemberFolder, copy: WorkingCopy) -> None:
        self._folder = folder
        self._copy = copy
        self._next_words = 0.0

    def turn(self) -> None:
        """Look for a request to stop; at times, tell how far the member is and look for newer attempts."""
        stop = self._folder.stop_path
        if not stop.exists() and self._copy.store.get(stop.name) is not None:
            self._folder.ask_to_stop()
        if time.monotonic() >= self._next_words:
            self._copy.push(only=[self._folder.progress_path.name, self._folder.epochs_path.name])
            self._folder.home.refresh()
            self._next_words = time.monotonic() + _SECONDS_BETWEEN_WORDS
