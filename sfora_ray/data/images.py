"""Decode one image file to uint8, whatever a camera, a scanner or a web shop made of it.

Every file ends in one of two forms, grey or RGB, upright, on white. What a plain ``convert`` gets wrong is
done by hand: EXIF orientation, 16-bit grey (scaled, where Pillow clips), and alpha (composited on white,
where Pillow shows the colour that lies hidden under transparent pixels).
"""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from sfora_ray.arrays import UInt8
from sfora_ray.errors import DataError

# What Pillow's plug-ins raise on damaged files, beside OSError.
_DAMAGE = (
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
        DataError: the file is absent, empty, truncated, or of a kind that Pillow cannot read.
    """
    try:
        with Image.open(path) as image:
            return to_pixels(image, channels=channels)
    except _DAMAGE as error:
        raise _unreadable(path, error) from error


def decode_bytes(content: bytes, *, channels: int, place: str) -> UInt8:
    """Return an encoded image's pixels as uint8 ``(H, W, C)``.

    Raises:
        DataError: it cannot be decoded; the message has ``place``.
    """
    try:
        with Image.open(io.BytesIO(content)) as image:
            return to_pixels(image, channels=channels)
    except _DAMAGE as error:
        raise DataError(f"{place}: not a readable image, got {type(error).__name__}: {error}. Replace it.") from error


def decoded_size(path: Path, *, channels: int) -> int:
    """Return the bytes that the decoded image takes, from its header alone.

    Raises:
        DataError: the header cannot be read.
    """
    try:
        with Image.open(path) as image:
            return image.width * image.height * channels
    except _DAMAGE as error:
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


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = "an empty file" if path.is_file() and path.stat().st_size == 0 else f"{type(error).__name__}: {error}"
    return DataError(
        f"{path}: not a readable image, got {reason}. Remove or replace it; "
        "`sfora-ray data check` lists all such files."
    )
