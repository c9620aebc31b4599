"""Decode one image file to uint8, whatever a camera, a scanner or a web shop made of it.

Every file ends in one of two forms, grey or RGB, upright, on white. What a plain ``convert`` gets wrong is
done by hand: EXIF orientation, 16-bit grey (scaled, where Pillow clips), and alpha (composited on white,
where Pillow shows the colour that lies hidden under transparent pixels).

A shared file system has hiccups; reads that fail for such a reason are tried again. If they go on failing, that is a
fault of the storage and not of the image, which must not be left out for it: another try would see other images.
"""

from __future__ import annotations

import contextlib
import errno
import io
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image, ImageOps

from sfora_ray.arrays import UInt8
from sfora_ray.data.unreadable import UnreadableImageError
from sfora_ray.errors import DataError, StorageError

T = TypeVar("T")

# By content, whatever a file's name says. Pillow knows more: PostScript among them, for which it runs Ghostscript.
FORMATS = ("BMP", "DIB", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")

# What Pillow's plug-ins raise on damaged files, beside OSError.
DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)
ABSENCE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""Error numbers of a path that leads to no file."""
# A damaged header makes Pillow seek to where no file has anything, which is EINVAL. Pillow's own errors have no number.
_OF_THE_FILE = ABSENCE | {errno.EISDIR, errno.EINVAL, errno.EACCES, errno.EPERM}
_PAUSES = (0.1, 0.5, 2.0)


@dataclass(frozen=True)
class FileImages:
    """An image source that decodes its files each time they are asked for.

    Attributes:
        paths: one file an image.
        channels: 1 (grey) or 3 (RGB).
    """

    paths: tuple[Path, ...]
    channels: int

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.paths)

    def __getitem__(self, row: int) -> UInt8:
        """Return image ``row`` as ``(H, W, C)``."""
        return decode_image(self.paths[row], channels=self.channels)


def decode_image(path: Path, *, channels: int) -> UInt8:
    """Return the file's pixels as uint8 ``(H, W, C)``.

    Raises:
        UnreadableImageError: the file is absent, empty, truncated, or of a kind that Pillow cannot read.
        StorageError: its file system goes on failing.
    """
    return _read(path, lambda image: to_pixels(image, channels=channels))


def decode_bytes(content: bytes, *, channels: int, place: str) -> UInt8:
    """Return an encoded image's pixels as uint8 ``(H, W, C)``.

    Raises:
        DataError: it cannot be decoded; the message has ``place``.
    """
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            return to_pixels(image, channels=channels)
    except DAMAGE as error:
        raise DataError(f"{place}: not a readable image, got {type(error).__name__}: {error}. Replace it.") from error


def decoded_size(path: Path, *, channels: int) -> int:
    """Return the bytes that the decoded image takes, from its header alone.

    Raises:
        UnreadableImageError: the header cannot be read.
        StorageError: its file system goes on failing.
    """
    return _read(path, lambda image: image.width * image.height * channels)


def patiently(path: Path, action: Callable[[], T]) -> T:
    """Do something with a file, several times if its file system asks for patience.

    Raises:
        OSError: the file is to blame: it is absent, damaged, or not ours to read.
        StorageError: the file system is, and has failed each time.
    """
    pauses = iter(_PAUSES)
    while True:
        try:
            return action()
        except OSError as error:
            if error.errno is None or error.errno in _OF_THE_FILE:
                raise
            pause = next(pauses, None)
            if pause is None:
                raise _storage_error(path, error) from error
            time.sleep(pause)


def _read(path: Path, use: Callable[[Image.Image], T]) -> T:
    """Open an image and use it."""

    def opened() -> T:
        with Image.open(path, formats=FORMATS) as image:
            return use(image)

    try:
        return patiently(path, opened)
    except DAMAGE as error:
        raise _unreadable(path, error) from error


def to_pixels(image: Image.Image, *, channels: int) -> UInt8:
    """Return an opened image as uint8 ``(H, W, C)``: upright, 8 bits, on white."""
    assert channels in (1, 3)
    upright = ImageOps.exif_transpose(image)
    flat = _on_white(_eight_bits(upright))
    pixels = np.asarray(flat.convert("L" if channels == 1 else "RGB"), dtype=np.uint8)
    return pixels.reshape(*pixels.shape[:2], channels)


def _eight_bits(image: Image.Image) -> Image.Image:
    if not image.mode.startswith("I"):
        if image.mode == "F":
            raise ValueError("pixels are floating-point numbers, whose white is unknown")
        return image
    values = np.asarray(image).astype(np.int64)  # (H, W)
    if values.min() < 0 or values.max() > 65535:
        raise ValueError(f"grey values must lie in 0..65535, got {values.min()}..{values.max()}")
    # 65535 = 255 * 257, so this is the nearest 8-bit value.
    return Image.fromarray(((values + 128) // 257).astype(np.uint8))


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image
    layers = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers).convert("RGB")


def _unreadable(path: Path, error: Exception) -> UnreadableImageError:
    return UnreadableImageError(
        f"{path}: not a readable image, got {_reason(path, error)}. Remove or replace it; "
        "`sfora-ray data check` lists all such files."
    )


def _storage_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path}: its file system failed in every try, got {_reason(path, error)}. See to it, then run the command "
        "again; remove or replace the file if it is the only one."
    )


def _reason(path: Path, error: Exception) -> str:
    with contextlib.suppress(OSError):
        if path.stat().st_size == 0:
            return "an empty file"
    if isinstance(error, FileNotFoundError):
        return f"a link to nothing ({path.readlink()})" if path.is_symlink() else "no file there"
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
