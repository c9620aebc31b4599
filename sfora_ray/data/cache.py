"""Decoded images of a node, shared by all members on it: decoding is done once, then pages are read.

All pixels lie in one flat file, beside an index of offsets and shapes; members map it, so the kernel keeps
one copy. The folder's name is a digest of the data set, its files' paths, sizes and times, and the channels:
a changed photo makes another cache. Members that start together wait for the first to finish.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sfora_ray.arrays import Int64, UInt8
from sfora_ray.data.base import ChosenRows, ImageDataset, ImageSource, ImageTable
from sfora_ray.data.images import FileImages, decode_image, decoded_size
from sfora_ray.data.locks import exclusive_lock
from sfora_ray.errors import DataError
from sfora_ray.files import write_bytes

_PIXELS = "pixels.bin"
_INDEX = "index.npy"
_SPARE_BYTES = 1 << 30  # left free on the disk for whatever else a run writes


@dataclass(frozen=True)
class CachedDataset:
    """A data set after caching, and what that took.

    Attributes:
        dataset: the same rows; sources of files are replaced by mapped pixels where they fit.
        num_decoded: images decoded by this call: 0 when the cache was there.
        num_bytes: size of the decoded pixels.
        folder: where they lie; None if nothing is cached.
        note: why nothing is cached; empty otherwise.
    """

    dataset: ImageDataset
    num_decoded: int
    num_bytes: int
    folder: Path | None
    note: str = ""


class DecodedImages:
    """An image source that maps a folder written by :func:`cached`."""

    def __init__(self, folder: Path, channels: int) -> None:
        self.folder = folder
        self.channels = channels
        self._index: Int64 = np.load(folder / _INDEX, allow_pickle=False)  # (N, 3): offset, height, width
        self._pixels: UInt8 = np.asarray(np.memmap(folder / _PIXELS, dtype=np.uint8, mode="r"))

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._index)

    def __getitem__(self, row: int) -> UInt8:
        """Return image ``row`` as ``(H, W, C)``, read-only."""
        offset, height, width = self._index[row].tolist()
        flat = self._pixels[offset : offset + height * width * self.channels]
        return flat.reshape(height, width, self.channels)

    def __reduce__(self) -> tuple[type[DecodedImages], tuple[Path, int]]:
        """Pickle the folder: a pickled memory map would carry every pixel."""
        return DecodedImages, (self.folder, self.channels)


def cached(
    dataset: ImageDataset,
    cache_dir: Path,
    *,
    limit_bytes: int,
    on_progress: Callable[[int, int], None],
) -> CachedDataset:
    """Return the data set with its files decoded to a cache that all processes of the node share.

    Args:
        dataset: tables whose sources are no files pass through.
        cache_dir: on a local disk.
        limit_bytes: if the decoded pixels take more, files are decoded on the fly as before.
        on_progress: called with ``(done, total)`` while images are decoded.

    Raises:
        DataError: an image cannot be read.
    """
    paths = [*_paths(dataset.train.images), *_paths(dataset.test.images)]
    if not paths:
        return CachedDataset(dataset, 0, 0, None)
    folder = cache_dir / "decoded" / _key(dataset, paths)
    num_decoded = 0
    with exclusive_lock(folder.with_name(f"{folder.name}.lock")):
        if not (folder / _INDEX).exists():
            with ThreadPoolExecutor() as threads:
                sizes = list(threads.map(lambda path: decoded_size(path, channels=dataset.channels), paths))
            refusal = _refusal(sum(sizes), limit_bytes, cache_dir)
            if refusal:
                return CachedDataset(dataset, 0, sum(sizes), None, refusal)
            _decode_all(folder, paths, sizes, dataset.channels, on_progress)
            num_decoded = len(paths)
    return CachedDataset(_mapped(dataset, folder), num_decoded, (folder / _PIXELS).stat().st_size, folder)


def _paths(source: ImageSource) -> Sequence[Path]:
    if isinstance(source, FileImages):
        return source.paths
    if isinstance(source, ChosenRows):
        paths = _paths(source.source)
        return [paths[row] for row in source.chosen] if paths else []
    return []


def _key(dataset: ImageDataset, paths: Sequence[Path]) -> str:
    hasher = hashlib.blake2b(f"1 {dataset.digest} {dataset.channels}".encode(), digest_size=12)
    for path in paths:
        try:
            state = path.stat()
        except OSError as error:
            raise DataError(f"{path}: not readable ({error.strerror}). Restore the file.") from error
        hasher.update(f"{path.resolve()}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    return hasher.hexdigest()


def _refusal(num_bytes: int, limit_bytes: int, cache_dir: Path) -> str:
    if num_bytes > limit_bytes:
        return (
            f"images are decoded on the fly: decoded they take {num_bytes / 1e9:.1f} GB, more than the "
            f"{limit_bytes / 1e9:.1f} GB of cache_gigabytes"
        )
    free = shutil.disk_usage(cache_dir).free
    if num_bytes + _SPARE_BYTES > free:
        return (
            f"images are decoded on the fly: decoded they take {num_bytes / 1e9:.1f} GB, and {cache_dir} has "
            f"{free / 1e9:.1f} GB free"
        )
    return ""


def _decode_all(
    folder: Path,
    paths: Sequence[Path],
    sizes: Sequence[int],
    channels: int,
    on_progress: Callable[[int, int], None],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ends = np.cumsum(sizes)
    shapes: list[tuple[int, int]] = []
    draft = folder / f".{_PIXELS}"

    def store(row: int) -> tuple[int, int]:
        pixels = decode_image(paths[row], channels=channels)
        if pixels.size != sizes[row]:
            raise DataError(
                f"{paths[row]}: the header says {sizes[row]} values, got {pixels.size}. Save the image anew."
            )
        # Not through a map: a full disk is then an error, not a SIGBUS.
        os.pwrite(stream.fileno(), pixels.tobytes(), int(ends[row]) - sizes[row])
        return pixels.shape[0], pixels.shape[1]

    with draft.open("wb") as stream, ThreadPoolExecutor() as threads:
        for done, shape in enumerate(threads.map(store, range(len(paths))), start=1):
            shapes.append(shape)
            on_progress(done, len(paths))
    draft.replace(folder / _PIXELS)
    # Last, for its presence says that the pixels are whole.
    write_bytes(folder / _INDEX, _index_file(ends - np.asarray(sizes), shapes))


def _index_file(offsets: Int64, shapes: Sequence[tuple[int, int]]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.column_stack([offsets, np.asarray(shapes)]).astype(np.int64), allow_pickle=False)
    return buffer.getvalue()


def _mapped(dataset: ImageDataset, folder: Path) -> ImageDataset:
    source = DecodedImages(folder, dataset.channels)
    num_train = len(_paths(dataset.train.images))
    return replace(
        dataset,
        train=_with_rows(dataset.train, source, 0),
        test=_with_rows(dataset.test, source, num_train),
    )


def _with_rows(table: ImageTable, source: DecodedImages, first: int) -> ImageTable:
    if not _paths(table.images):
        return table
    return replace(table, images=ChosenRows(source, np.arange(first, first + len(table))))
