"""Decoded images of a node, shared by all members on it: decoding is done once, then pages are read.

All pixels lie in one flat file, beside an index of offsets and shapes; members map it, so the kernel keeps
one copy. The folder's name is a digest of the data set, its files' paths, sizes and times, and the channels:
a changed photo makes another cache. Members that start together wait for the first to finish. A file that could
not be read, where that is tolerated, leaves a hole: its row is read from the file whenever it is asked for.
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
from sfora_ray.data.images import ABSENCE, FileImages, decode_image, decoded_size, patiently
from sfora_ray.data.locks import exclusive_lock
from sfora_ray.data.unreadable import Tolerance, UnreadableImage, UnreadableImageError
from sfora_ray.errors import StorageError
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
        unreadable: images that cannot be read, as far as has been looked: by their headers where nothing is cached.
    """

    dataset: ImageDataset
    num_decoded: int
    num_bytes: int
    folder: Path | None
    note: str = ""
    unreadable: tuple[UnreadableImage, ...] = ()


class DecodedImages:
    """An image source that maps a folder written by :func:`cached`; ``holes`` are the files of rows not in it."""

    def __init__(self, folder: Path, channels: int, holes: dict[int, Path]) -> None:
        self.folder = folder
        self.channels = channels
        self.holes = holes
        self._index = read_index(folder)
        # An empty file, of holes alone, cannot be mapped.
        whole = (folder / _PIXELS).stat().st_size > 0
        pixels = np.memmap(folder / _PIXELS, dtype=np.uint8, mode="r") if whole else np.zeros(0, np.uint8)
        self._pixels: UInt8 = np.asarray(pixels)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._index)

    def __getitem__(self, row: int) -> UInt8:
        """Return image ``row`` as ``(H, W, C)``, read-only."""
        if row in self.holes:
            return decode_image(self.holes[row], channels=self.channels)
        offset, height, width = self._index[row].tolist()
        flat = self._pixels[offset : offset + height * width * self.channels]
        return flat.reshape(height, width, self.channels)

    def __reduce__(self) -> tuple[type[DecodedImages], tuple[Path, int, dict[int, Path]]]:
        """Pickle the folder: a pickled memory map would carry every pixel."""
        return DecodedImages, (self.folder, self.channels, self.holes)


def read_index(folder: Path) -> Int64:
    """Return ``(N, 3)``: offset, height and width of each image; both sides of a hole are 0."""
    index: Int64 = np.load(folder / _INDEX, allow_pickle=False)
    return index


def cached(
    dataset: ImageDataset,
    cache_dir: Path,
    *,
    limit_bytes: int,
    on_progress: Callable[[int, int], None],
    tolerate: int = 0,
) -> CachedDataset:
    """Return the data set with its files decoded to a cache that all processes of the node share.

    Args:
        dataset: tables whose sources are no files pass through.
        cache_dir: on a local disk.
        limit_bytes: if the decoded pixels take more, files are decoded on the fly as before.
        on_progress: called with ``(done, total)`` while images are decoded.
        tolerate: how many images may be unreadable.

    Raises:
        DataError: more images cannot be read.
        StorageError: the cache cannot be written, or the files' file system goes on failing.
    """
    files = _Files.of(dataset)
    if not files.paths:
        return CachedDataset(dataset, 0, 0, None)
    folder = cache_dir / "decoded" / _key(dataset, files.paths)
    damage = Tolerance(tolerate)
    num_decoded = 0
    with exclusive_lock(folder.with_name(f"{folder.name}.lock")):
        if _is_whole(folder, len(files.paths), files.channels):
            _look_into_holes(folder, files, damage)
        else:
            sizes = _sizes(files, damage)
            refusal = _refusal(sum(sizes), limit_bytes, cache_dir)
            if refusal:
                return CachedDataset(dataset, 0, sum(sizes), None, refusal, files.in_order(damage))
            _decode_all(folder, files, sizes, damage, on_progress)
            num_decoded = len(files.paths)
    size = (folder / _PIXELS).stat().st_size
    return CachedDataset(_mapped(dataset, files, folder), num_decoded, size, folder, "", files.in_order(damage))


@dataclass(frozen=True)
class _Files:
    """The files of both splits, train first."""

    ids: tuple[str, ...]
    paths: tuple[Path, ...]
    channels: int

    @classmethod
    def of(cls, dataset: ImageDataset) -> _Files:
        tables = [table for table in (dataset.train, dataset.test) if _paths(table.images)]
        ids = tuple(identifier for table in tables for identifier in table.ids)
        return cls(ids, tuple(path for table in tables for path in _paths(table.images)), dataset.channels)

    def in_order(self, damage: Tolerance) -> tuple[UnreadableImage, ...]:
        """Return the unreadable images in the order of the tables."""
        place = {identifier: row for row, identifier in enumerate(self.ids)}
        return tuple(sorted(damage.found, key=lambda image: place[image.id]))

    def size(self, row: int) -> int | UnreadableImage:
        """Return the bytes that image ``row`` takes once decoded, by its header."""
        try:
            return decoded_size(self.paths[row], channels=self.channels)
        except UnreadableImageError as error:
            return UnreadableImage(self.ids[row], str(error))

    def decode(self, row: int) -> UInt8 | UnreadableImage:
        """Return the pixels of image ``row``."""
        try:
            return decode_image(self.paths[row], channels=self.channels)
        except UnreadableImageError as error:
            return UnreadableImage(self.ids[row], str(error))


def _paths(source: ImageSource) -> Sequence[Path]:
    if isinstance(source, FileImages):
        return source.paths
    if isinstance(source, ChosenRows):
        paths = _paths(source.source)
        return [paths[row] for row in source.chosen] if paths else []
    return []


def _key(dataset: ImageDataset, paths: Sequence[Path]) -> str:
    hasher = hashlib.blake2b(f"2 {dataset.digest} {dataset.channels}".encode(), digest_size=12)
    for path in paths:
        hasher.update(_identity(path).encode())
    return hasher.hexdigest()


def _identity(path: Path) -> str:
    """Return where a file lies, and its size and time; a file that is only out of reach must not look absent."""

    def present() -> str:
        state = path.stat()
        return f"{path.resolve(strict=True)}\0{state.st_size}\0{state.st_mtime_ns}\0"

    try:
        return patiently(path, present)
    except OSError as error:
        if error.errno in ABSENCE:
            return f"{os.path.realpath(path)}\0absent\0"  # resolve() refuses links that lead in a circle
        raise StorageError(f"{path}: cannot be looked at, got '{error}'. Make it accessible.") from error


def _sizes(files: _Files, damage: Tolerance) -> list[int]:
    with ThreadPoolExecutor() as threads:
        return [_or_nothing(found, damage) for found in threads.map(files.size, range(len(files.paths)))]


def _or_nothing(size: int | UnreadableImage, damage: Tolerance) -> int:
    if isinstance(size, int):
        return size
    damage.add(size)
    return 0


def _is_whole(folder: Path, num_images: int, channels: int) -> bool:
    """Return whether the cache is there; one that a crash of the machine has cut off is made again."""
    try:
        index, size = read_index(folder), (folder / _PIXELS).stat().st_size
    except (OSError, ValueError, EOFError):
        return False
    if index.shape != (num_images, 3):
        return False
    return bool((index[:, 0] + index[:, 1] * index[:, 2] * channels <= size).all())


def _look_into_holes(folder: Path, files: _Files, damage: Tolerance) -> None:
    for row in _holes(folder):
        found = files.decode(row)
        if isinstance(found, UnreadableImage):
            damage.add(found)


def _holes(folder: Path) -> list[int]:
    holes: list[int] = np.flatnonzero(read_index(folder)[:, 1] == 0).tolist()
    return holes


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
    files: _Files,
    sizes: Sequence[int],
    damage: Tolerance,
    on_progress: Callable[[int, int], None],
) -> None:
    ends = np.cumsum(sizes)
    shapes: list[tuple[int, int]] = []
    draft = folder / f".{_PIXELS}"

    def store(row: int) -> tuple[int, int] | UnreadableImage:
        pixels = files.decode(row)
        if isinstance(pixels, UnreadableImage):
            return pixels
        if pixels.size != sizes[row]:
            reason = f"the header says {sizes[row]} values, got {pixels.size}. Save the image anew."
            return UnreadableImage(files.ids[row], f"{files.paths[row]}: {reason}")
        # Not through a map: a full disk is then an error, not a SIGBUS.
        os.pwrite(stream.fileno(), pixels.tobytes(), int(ends[row]) - sizes[row])
        return pixels.shape[0], pixels.shape[1]

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as stream, ThreadPoolExecutor() as threads:
            for done, found in enumerate(threads.map(store, range(len(sizes))), start=1):
                shapes.append(_shape_or_hole(found, damage))
                on_progress(done, len(sizes))
        draft.replace(folder / _PIXELS)
        # Last, for its presence says that the pixels are whole.
        write_bytes(folder / _INDEX, _index_file(ends - np.asarray(sizes), shapes))
    except OSError as error:
        raise StorageError(
            f"{folder}: the decoded images could not be written, got {error.strerror or error}. Free space on that "
            "disk, set `cache_dir` to another, or set input.cache_gigabytes to 0."
        ) from error


def _shape_or_hole(found: tuple[int, int] | UnreadableImage, damage: Tolerance) -> tuple[int, int]:
    if isinstance(found, tuple):
        return found
    damage.add(found)
    return 0, 0


def _index_file(offsets: Int64, shapes: Sequence[tuple[int, int]]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.column_stack([offsets, np.asarray(shapes)]).astype(np.int64), allow_pickle=False)
    return buffer.getvalue()


def _mapped(dataset: ImageDataset, files: _Files, folder: Path) -> ImageDataset:
    source = DecodedImages(folder, dataset.channels, {row: files.paths[row] for row in _holes(folder)})
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
