"""Letters as retrieval data: the default data set, made on the spot from the fonts that matplotlib ships.

A class is a letter, its 16 images are that letter in 16 faces (DejaVu Sans, Sans Mono and Serif, STIX; each
upright, bold, italic, bold italic). Latin letters train; Greek and Cyrillic letters test. Letters that look
alike are found by their rendered shapes, stretched to one square so that size alone tells no two apart:
within a side they are merged into the first of them, and a test letter that looks like any Latin letter is
left out. A letter that one of the faces lacks, or that two faces draw pixel for pixel alike, is no class.

Nothing is random. Beside its own forms, each face sets its letters in a slight pose of its own (size,
rotation, place), the same for all letters: without it the nearest image in pixels is the same letter nine
times of ten, and a network has little to learn.
"""

from __future__ import annotations

import hashlib
import importlib.util
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from PIL import Image, ImageFont, features
from pydantic import Field

from sfora_ray.arrays import Float32, UInt8
from sfora_ray.card import Card
from sfora_ray.data.base import DatasetOptions, ImageDataset, make_dataset
from sfora_ray.data.prepared import PreparedSplit, prepare_once
from sfora_ray.errors import DataError

FACES = (
    *(f"DejaVuSans{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSansMono{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{style}" for style in ("", "-Bold", "-Italic", "-BoldItalic")),
    *(f"STIXGeneral{style}" for style in ("", "Bol", "Italic", "BolIta")),
)
"""The font files that draw all three scripts."""


@dataclass(frozen=True)
class Pose:
    """How one face sets its letters.

    Attributes:
        scale: font size over the image's side.
        degrees: rotation, counter-clockwise.
        across: share of the free width left of the letter.
        down: share of the free height above it.
    """

    scale: float
    degrees: float
    across: float
    down: float


def _poses() -> tuple[Pose, ...]:
    """Spread scale, rotation and place over the faces so that no two styles of a family share any of them."""
    scales, angles, places = (0.68, 0.665, 0.655, 0.64), (-2.5, 2.5, -1.0, 1.0), (0.47, 0.49, 0.51, 0.53)
    return tuple(
        Pose(
            scales[(style + family) % 4],
            angles[(style + 2 * family) % 4],
            places[(style + 3 * family) % 4],
            places[(3 * style + family) % 4],
        )
        for family in range(4)
        for style in range(4)
    )


POSES = _poses()
"""One pose a face, in the order of ``FACES``."""

_FORMAT = 1
_TRAIN_BLOCKS = (range(0x0041, 0x0250), range(0x1E00, 0x1F00))
_TEST_BLOCKS = (range(0x0370, 0x0400), range(0x0400, 0x0530))
_ABSENT = "\U0010fffd"  # a private code point that no font draws: shows the box for missing letters
_SHAPE_POINTS = 64
_SHAPE_SIDE = 20
_ALIKE = 0.95
_ALIKE_FACES = 12
_CASE_ALIKE = 0.85
_ACROSS_FACES = 2
_ACROSS_ALIKE = 0.88


class GlyphsOptions(DatasetOptions):
    """Letters of three scripts in 16 faces; needs no download."""

    card: ClassVar[Card] = Card(
        title="Glyphs",
        paper="this project: letters drawn from the fonts that matplotlib ships",
        checked="look-alike letters, split by script and repeatable pixels in tests",
        differences="not applicable",
    )
    name: Literal["glyphs"] = "glyphs"
    image_size: int = Field(32, ge=16, le=128)
    """Side of the square images, 1 channel, white on black."""

    def load(self, cache_dir: Path) -> ImageDataset:
        """Render the letters, or map those rendered before.

        Raises:
            DataError: matplotlib's fonts are not installed.
        """
        folder = font_folder()
        tables = prepare_once(cache_dir / "glyphs" / _key(folder, self.image_size), lambda: _make(folder, self))
        return make_dataset(name="glyphs", channels=1, train=tables.train, test=tables.test, notes=tables.notes)


@dataclass(frozen=True, eq=False)
class Letters:
    """Letters that every face draws.

    Attributes:
        characters: the letters, by code point.
        shapes: ``(N, F, S)`` unit vectors, one a face: the ink's bounding box stretched to a small square.
    """

    characters: tuple[str, ...]
    shapes: Float32


@dataclass(frozen=True)
class Choice:
    """The letters that are classes, and those that are not because they look like another."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    merged: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]


def font_folder() -> Path:
    """Return matplotlib's font folder without importing matplotlib.

    Raises:
        DataError: matplotlib is not installed.
    """
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("data glyphs: matplotlib's fonts are not there. Install matplotlib, or use another data set.")
    return Path(spec.submodule_search_locations[0]) / "mpl-data" / "fonts" / "ttf"


def choose_letters(folder: Path) -> Choice:
    """Return the letters of each side, look-alikes merged or left out."""
    fonts = _fonts(folder, [_SHAPE_POINTS] * len(FACES))
    latin = _letters(fonts, "LATIN", _TRAIN_BLOCKS)
    others = _letters(fonts, ("GREEK", "CYRILLIC"), _TEST_BLOCKS)
    foreign, left_out = _unlike(others, latin)
    train, merged_train = _merge(latin)
    test, merged_test = _merge(foreign)
    return Choice(train, test, (*merged_train, *merged_test), left_out)


def _make(folder: Path, options: GlyphsOptions) -> tuple[PreparedSplit, PreparedSplit, tuple[str, ...]]:
    choice = choose_letters(folder)
    points = [round(2 * options.image_size * pose.scale) for pose in POSES]
    fonts = _fonts(folder, points)
    notes = (
        f"{len(choice.merged)} letters merged with one that looks alike; {len(choice.left_out)} Greek and "
        "Cyrillic letters left out that look like a Latin one",
    )
    return (
        _render(choice.train, fonts, options.image_size),
        _render(choice.test, fonts, options.image_size),
        notes,
    )


def _key(folder: Path, image_size: int) -> str:
    hasher = hashlib.blake2b(digest_size=8)
    versions = f"{_FORMAT} {image_size} {POSES} {unicodedata.unidata_version} {features.version('freetype2')}"
    hasher.update(versions.encode())
    for face in FACES:
        hasher.update(_font_path(folder, face).read_bytes())
    return hasher.hexdigest()


def _font_path(folder: Path, face: str) -> Path:
    path = folder / f"{face}.ttf"
    if not path.is_file():
        raise DataError(f"{path}: a font of matplotlib's is absent. Install matplotlib again.")
    return path


def _fonts(folder: Path, points: Sequence[int]) -> list[ImageFont.FreeTypeFont]:
    # The basic layout draws the same with and without the optional shaping library.
    layout = ImageFont.Layout.BASIC
    return [
        ImageFont.truetype(str(_font_path(folder, face)), size, layout_engine=layout)
        for face, size in zip(FACES, points, strict=True)
    ]


def _letters(
    fonts: Sequence[ImageFont.FreeTypeFont], scripts: str | tuple[str, ...], blocks: Sequence[range]
) -> Letters:
    boxes = [_ink(font, _ABSENT) for font in fonts]
    characters: list[str] = []
    shapes: list[Float32] = []
    for character in (chr(code) for block in blocks for code in block):
        if not _is_letter(character, scripts):
            continue
        drawn = [_ink(font, character) for font in fonts]
        if all(_is_drawn(ink, box) for ink, box in zip(drawn, boxes, strict=True)):
            characters.append(character)
            shapes.append(np.stack([_shape(ink) for ink in drawn]))
    return Letters(tuple(characters), np.stack(shapes))


def _is_letter(character: str, scripts: str | tuple[str, ...]) -> bool:
    name = unicodedata.name(character, "")
    return unicodedata.category(character) in ("Lu", "Ll", "Lo") and name.startswith(scripts)


def _is_drawn(ink: UInt8, missing_box: UInt8) -> bool:
    return ink.size > 0 and not np.array_equal(ink, missing_box)


def _ink(font: ImageFont.FreeTypeFont, character: str) -> UInt8:
    mask = font.getmask(character, mode="L")
    pixels = np.array(mask, dtype=np.uint8).reshape(mask.size[1], mask.size[0])
    if not pixels.size:
        return pixels
    rows, columns = np.flatnonzero(pixels.max(1) > 64), np.flatnonzero(pixels.max(0) > 64)
    if not len(rows):
        return np.zeros((0, 0), np.uint8)
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _shape(ink: UInt8) -> Float32:
    square = Image.fromarray(ink).resize((_SHAPE_SIDE, _SHAPE_SIDE), Image.Resampling.BOX)
    flat = np.asarray(square, dtype=np.float32).ravel()
    return np.asarray(flat / np.linalg.norm(flat), dtype=np.float32)


def likeness(left: Float32, right: Float32) -> Float32:
    """Return the cosine of each two shapes, face by face: ``(N, F, S)``, ``(M, F, S)`` to ``(N, M, F)``."""
    product = left.transpose(1, 0, 2) @ right.transpose(1, 2, 0)  # (F, N, M)
    return np.asarray(product.transpose(1, 2, 0), dtype=np.float32)


def _unlike(letters: Letters, latin: Letters) -> tuple[Letters, tuple[tuple[str, str], ...]]:
    """Leave out letters that look like a Latin one: the same in two faces is enough, italics differ."""
    near = likeness(letters.shapes, latin.shapes)
    alike = ((near > _ALIKE).sum(2) >= _ACROSS_FACES) | (near.mean(2) > _ACROSS_ALIKE)
    kept = np.flatnonzero(~alike.any(1))
    left_out = tuple(
        (letters.characters[row], latin.characters[int(alike[row].argmax())]) for row in np.flatnonzero(alike.any(1))
    )
    return Letters(tuple(letters.characters[row] for row in kept), letters.shapes[kept]), left_out


def _merge(letters: Letters) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Keep the first of letters alike in most faces; the cases of one letter need less likeness."""
    near = likeness(letters.shapes, letters.shapes)
    alike = (near > _ALIKE).sum(2) >= _ALIKE_FACES
    kept: list[int] = []
    merged: list[tuple[str, str]] = []
    for row, character in enumerate(letters.characters):
        first = next(
            (
                other
                for other in kept
                if alike[row, other]
                or (character.upper() == letters.characters[other] and near[row, other].mean() > _CASE_ALIKE)
            ),
            None,
        )
        if first is None:
            kept.append(row)
        else:
            merged.append((character, letters.characters[first]))
    return tuple(letters.characters[row] for row in kept), tuple(merged)


def _render(characters: Sequence[str], fonts: Sequence[ImageFont.FreeTypeFont], size: int) -> PreparedSplit:
    faces = list(zip(fonts, POSES, strict=True))
    drawn = {
        character: np.stack([_draw(font, pose, character, size) for font, pose in faces]) for character in characters
    }
    kept = [character for character, images in drawn.items() if len(np.unique(images, axis=0)) == len(FACES)]
    return PreparedSplit(
        tuple(f"u{ord(character):04x}/{face}" for character in kept for face in FACES),
        tuple(f"u{ord(character):04x} {unicodedata.name(character)}" for character in kept for _ in FACES),
        np.concatenate([drawn[character] for character in kept])[..., None],  # (N, H, W, 1)
    )


def _draw(font: ImageFont.FreeTypeFont, pose: Pose, character: str, size: int) -> UInt8:
    """Draw a letter in the pose of its face, white on a black square ``(H, W)``."""
    drawn = Image.fromarray(_ink(font, character)).rotate(pose.degrees, Image.Resampling.BILINEAR, expand=True)
    # Twice the size, halved by averaging: a rotation at the final size would blur thin strokes.
    drawn.thumbnail((2 * (size - 2), 2 * (size - 2)), Image.Resampling.BILINEAR)
    canvas = Image.new("L", (2 * size, 2 * size))
    room = (2 * size - 4 - drawn.width, 2 * size - 4 - drawn.height)
    canvas.paste(drawn, (2 + round(room[0] * pose.across), 2 + round(room[1] * pose.down)))
    return np.asarray(canvas.reduce(2), dtype=np.uint8)
