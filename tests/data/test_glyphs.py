import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from sfora_ray.data.base import ImageDataset, ImageTable
from sfora_ray.data.glyphs import FACES, POSES, Choice, GlyphsOptions, choose_letters, font_folder


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def glyphs(cache_dir: Path) -> ImageDataset:
    return GlyphsOptions().load(cache_dir)


@pytest.fixture(scope="module")
def choice() -> Choice:
    return choose_letters(font_folder())


def pixels(table: ImageTable) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.stack([table.images[row] for row in range(len(table))])


def test_there_are_300_classes_of_16_distinct_images(glyphs: ImageDataset) -> None:
    assert len(glyphs.train.class_names) + len(glyphs.test.class_names) >= 300
    for table in (glyphs.train, glyphs.test):
        images = pixels(table)
        assert images.shape == (16 * len(table.class_names), 32, 32, 1)
        for label in range(len(table.class_names)):
            assert len(np.unique(images[table.labels == label], axis=0)) == 16
        # Every image has ink, and none of it is cut by the border.
        assert (images.max((1, 2, 3)) > 128).all()
        assert not images[:, [0, -1]].any()
        assert not images[:, :, [0, -1]].any()


def test_scripts_are_split(glyphs: ImageDataset) -> None:
    assert {name.split()[1] for name in glyphs.train.class_names} == {"LATIN"}
    assert {name.split()[1] for name in glyphs.test.class_names} == {"GREEK", "CYRILLIC"}
    for name, identifier in zip(
        (glyphs.test.class_names[label] for label in glyphs.test.labels), glyphs.test.ids, strict=True
    ):
        code, face = identifier.split("/")
        assert face in FACES
        assert name == f"{code} {unicodedata.name(chr(int(code[1:], 16)))}"


@pytest.mark.parametrize("letter", "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοАВЕКМНОРСТУХаеорсухіјѕЅЈ")
def test_letters_that_look_latin_do_not_test(choice: Choice, letter: str) -> None:
    assert letter not in choice.test
    assert letter in dict(choice.left_out)


@pytest.mark.parametrize("pair", ["Oo", "Cc", "Ss", "Vv", "Ww", "Xx", "Zz", "Øø"])
def test_cases_that_differ_in_size_alone_are_merged(choice: Choice, pair: str) -> None:
    assert pair[0] in choice.train
    assert pair[1] not in choice.train
    assert dict(choice.merged)[pair[1]] == pair[0]


@pytest.mark.parametrize("letters", ["AaBbDdEeGgQqRr", "ÀÁàáéèñçßŁłĄą", "ΔΞΣΨΩαβγζμνξπσφω", "ДЖЗЛЦЧШЩЪЫЬЭЮЯд"])
def test_distinct_letters_stay(choice: Choice, letters: str) -> None:
    assert set(letters) <= {*choice.train, *choice.test}


def test_a_letter_is_in_one_place(choice: Choice) -> None:
    merged, left_out = {one for one, _ in choice.merged}, {one for one, _ in choice.left_out}
    groups = [set(choice.train), set(choice.test), merged, left_out]
    assert sum(len(group) for group in groups) == len(set.union(*groups))


def test_greek_and_cyrillic_twins_are_one_class(choice: Choice) -> None:
    merged = dict(choice.merged)
    assert merged["Ф"] == "Φ"
    assert merged["ж"] == "Ж"


def test_second_load_maps_what_the_first_wrote(cache_dir: Path, glyphs: ImageDataset) -> None:
    files = {path: path.stat().st_mtime_ns for path in cache_dir.rglob("*.npy")}
    again = GlyphsOptions().load(cache_dir)
    assert {path: path.stat().st_mtime_ns for path in cache_dir.rglob("*.npy")} == files
    assert again.digest == glyphs.digest
    np.testing.assert_array_equal(pixels(again.test), pixels(glyphs.test))


def test_rendering_is_deterministic(tmp_path: Path, glyphs: ImageDataset) -> None:
    np.testing.assert_array_equal(pixels(GlyphsOptions().load(tmp_path).test), pixels(glyphs.test))


def test_other_sizes_have_other_files(cache_dir: Path) -> None:
    table = GlyphsOptions(image_size=20).load(cache_dir).test
    assert table.images[0].shape == (20, 20, 1)


def test_styles_of_a_family_share_no_scale_or_angle() -> None:
    for family in range(0, 16, 4):
        four = POSES[family : family + 4]
        assert len({pose.scale for pose in four}) == len({pose.degrees for pose in four}) == 4
        assert len({pose.across for pose in four}) == len({pose.down for pose in four}) == 4


def test_matplotlib_is_not_imported() -> None:
    code = (
        "import sys; from sfora_ray.data.glyphs import font_folder; font_folder(); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
