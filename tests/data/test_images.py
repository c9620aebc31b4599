import errno
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sfora_ray.data import images as images_module
from sfora_ray.data.images import FileImages, decode_image, decoded_size
from sfora_ray.data.unreadable import UnreadableImageError
from sfora_ray.errors import DataError
from tests.data.pictures import noise


def save(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(
    ("orientation", "upright"),
    [
        (1, lambda a: a),
        (2, lambda a: a[:, ::-1]),
        (3, lambda a: a[::-1, ::-1]),
        (4, lambda a: a[::-1]),
        (5, lambda a: a.transpose(1, 0, 2)),
        (6, lambda a: np.rot90(a, -1)),
        (7, lambda a: a[::-1, ::-1].transpose(1, 0, 2)),
        (8, lambda a: np.rot90(a)),
    ],
)
def test_exif_orientation_is_undone(tmp_path: Path, orientation: int, upright: object) -> None:
    stored = noise(1, 5, 7)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save(Image.fromarray(stored), tmp_path / "a.png", exif=exif)
    assert callable(upright)
    np.testing.assert_array_equal(decode_image(path, channels=3), upright(stored))


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path: Path) -> None:
    values = np.array([[0, 128, 129, 257], [32768, 65534, 65535, 385]], dtype=np.uint16)
    path = save(Image.fromarray(values), tmp_path / "a.png")
    expected = np.round(values / 65535 * 255).astype(np.uint8)
    np.testing.assert_array_equal(decode_image(path, channels=1)[:, :, 0], expected)
    np.testing.assert_array_equal(decode_image(path, channels=3)[:, :, 2], expected)


def test_alpha_is_composited_on_white(tmp_path: Path) -> None:
    pixels = np.array([[[10, 20, 30, 0], [10, 20, 30, 255], [100, 100, 100, 51]]], dtype=np.uint8)
    decoded = decode_image(save(Image.fromarray(pixels), tmp_path / "a.png"), channels=3)
    # 100 at 20 % over white: 100 * .2 + 255 * .8
    np.testing.assert_array_equal(decoded[0], [[255, 255, 255], [10, 20, 30], [224, 224, 224]])


def test_transparent_palette_entry_is_white(tmp_path: Path) -> None:
    image = Image.fromarray(np.array([[0, 1]], dtype=np.uint8), mode=None).convert("P")
    image.putpalette([9, 9, 9, 200, 0, 0])
    path = save(image, tmp_path / "a.png", transparency=0)
    np.testing.assert_array_equal(decode_image(path, channels=3)[0], [[255, 255, 255], [200, 0, 0]])


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))  # magenta and yellow ink: red
    red = decode_image(save(image, tmp_path / "a.jpg", quality=95), channels=3)[4, 4]
    assert red[0] > 240
    assert max(red[1], red[2]) < 15


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB", "RGBA", "P", "I;16"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_has_the_asked_shape(tmp_path: Path, mode: str, channels: int) -> None:
    path = save(Image.new(mode, (6, 4)), tmp_path / "a.png")
    pixels = decode_image(path, channels=channels)
    assert pixels.shape == (4, 6, channels)
    assert pixels.dtype == np.uint8
    assert decoded_size(path, channels=channels) == pixels.size


def damaged(tmp_path: Path, kind: str) -> Path:
    whole = save(Image.fromarray(noise(3, 64, 64)), tmp_path / f"whole.{kind.split()[0]}").read_bytes()
    contents = {"half": whole[: len(whole) // 2], "empty": b"", "text": b"not an image", "head": whole[:20]}
    path = tmp_path / f"bad.{kind.split()[0]}"
    path.write_bytes(contents[kind.split()[1]])
    return path


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "bmp"])
@pytest.mark.parametrize("damage", ["half", "empty", "text", "head"])
def test_damage_is_one_error_that_names_the_file(tmp_path: Path, suffix: str, damage: str) -> None:
    path = damaged(tmp_path, f"{suffix} {damage}")
    with pytest.raises(DataError, match=r"bad\..*not a readable image, got .*Remove or replace it"):
        decode_image(path, channels=3)


def test_absent_file_and_floating_point_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.png"):
        decode_image(tmp_path / "none.png", channels=3)
    path = save(Image.new("F", (4, 4), 0.5), tmp_path / "a.tiff")
    with pytest.raises(DataError, match="floating-point"):
        decode_image(path, channels=1)


def test_source_decodes_its_rows(tmp_path: Path) -> None:
    images = [noise(seed) for seed in range(3)]
    paths = tuple(save(Image.fromarray(pixels), tmp_path / f"{row}.png") for row, pixels in enumerate(images))
    source = FileImages(paths, 3)
    assert len(source) == 3
    for row, pixels in enumerate(images):
        np.testing.assert_array_equal(source[row], pixels)


@pytest.mark.parametrize("number", [None, errno.EINVAL, errno.EACCES])
def test_damage_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None) -> None:
    def open_badly(*_: object, **__: object) -> Image.Image:
        raise OSError("broken data stream") if number is None else OSError(number, os.strerror(number))

    monkeypatch.setattr(images_module, "_PAUSES", (1e9,))
    monkeypatch.setattr(Image, "open", open_badly)
    with pytest.raises(UnreadableImageError, match=r"a\.png: not a readable image"):
        decode_image(tmp_path / "a.png", channels=3)
