"""Small pictures for a report: at most 96 pixels a side, a few kilobytes each, the same bytes every time."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from sfora_ray.arrays import UInt8

SIDE = 96


def encode(pixels: UInt8) -> tuple[bytes, str]:
    """Shrink uint8 ``(H, W, C)`` to 96 pixels a side; return a grey PNG or a colour JPEG, and its ending."""
    grey = pixels.shape[2] == 1
    image = Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if grey else pixels))
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    if grey:
        image.save(stream, "PNG", optimize=True)
        return stream.getvalue(), "png"
    image.save(stream, "JPEG", quality=84, optimize=True)
    return stream.getvalue(), "jpg"
