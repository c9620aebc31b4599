"""Image folders, lists and archives that are damaged, or meant to do harm."""

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from sfora_ray.pack.run_folder import RunFolder
from tests.broken_inputs.conftest import Refused, Values
from tests.cli.conftest import Call
from tests.tiny import tiny_values
from tests.tiny_runs import write_config

PHOTO = "photos/class04/3.png"


@pytest.fixture
def photos(images: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(images, tmp_path / "photos"))


def config(place: Path, **data: object) -> Path:
    values: Values = tiny_values(place / "photos", place)
    values["data"] |= data
    return write_config(place / "tiny.yaml", values)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, pixels: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(pixels))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def jpeg(size: int = 16) -> bytes:
    stream = io.BytesIO()
    Image.effect_noise((size, size), 80).save(stream, "JPEG")
    return stream.getvalue()


FILES: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("text", b"not an image at all"),
    ("error_page", b"<!DOCTYPE html><title>404</title>"),
    ("half_a_jpeg", jpeg(64)[:400]),
    ("header_alone", b"\x89PNG\r\n\x1a\n"),
    ("no_pixels", png(16, 16)),
    ("bomb", png(30_000, 30_000)),
    ("zero_sides", png(0, 0)),
    ("lying_length", b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 2**31 - 1) + b"IHDR"),
    ("pickle", b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94."),
    ("postscript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(owned) (w) file\n"),
]


@pytest.mark.parametrize("content", [content for _, content in FILES], ids=[name for name, _ in FILES])
def test_an_image_file(content: bytes, photos: Path, refused: Refused) -> None:
    (refused.place / PHOTO).write_bytes(content)
    refused("pack", "run", config(refused.place), "--local", words=("class04/3.png: not a readable image, got ",))


@pytest.mark.slow
def test_a_pack_that_may_skip_leaves_them_out_and_says_so(photos: Path, call: Call, tmp_path: Path) -> None:
    gone = ("class04/3.png", "class05/2.png")
    for name in gone:
        (photos / name).write_bytes(b"")
    path = config(tmp_path)
    ended = call("pack", "run", path, "--local", "input.unreadable=skip", "seeds=[5]", "folds=[]")
    assert ended.code == 0, ended
    told = f"2 image(s) cannot be read and are left out: {', '.join(gone)}"
    assert told in ended.out
    (folder,) = (tmp_path / "runs").iterdir()
    run = RunFolder.open(folder)
    assert run.manifest().left_out == gone
    assert run.summary().pack.notes == (f"2 unreadable images left out: {', '.join(gone)}",)
    assert run.summary().pack.train_images + run.summary().pack.test_images == 94
    assert "The picture sheet is missing" not in (folder / "report" / "report.md").read_text(encoding="utf-8")
    (photos / "class04" / "4.png").unlink()
    (folder / "members" / "m00-seed5" / "result.json").unlink()
    ended = call("pack", "resume", folder, "--local")
    assert (ended.code, "its members saw data with digest" in ended.err) == (2, True), ended


def four_inks(path: Path) -> None:
    Image.effect_noise((16, 16), 80).convert("CMYK").save(path, "JPEG")


def palette(path: Path) -> None:
    image = Image.effect_noise((16, 16), 80).convert("P")
    image.save(path, "PNG", transparency=0)


def one_pixel(path: Path) -> None:
    Image.new("RGB", (1, 1), "red").save(path, "PNG")


def link_to_elsewhere(path: Path) -> None:
    shutil.move(path, path.parents[2] / "elsewhere.png")
    path.symlink_to(path.parents[2] / "elsewhere.png")


@pytest.mark.parametrize("spoil", [four_inks, palette, one_pixel, link_to_elsewhere])
def test_an_unusual_image_is_none_that_is_broken(spoil: Callable[[Path], None], photos: Path, call: Call) -> None:
    spoil(photos / "class04" / "3.png")
    ended = call("data", "check", config(photos.parent))
    assert (ended.code, ended.err.strip()) == (0, "")
    assert ended.out.endswith("every image can be read\n")


def empty_folder(photos: Path) -> None:
    shutil.rmtree(photos)
    photos.mkdir()


def single_class(photos: Path) -> None:
    for folder in sorted(photos.iterdir())[1:]:
        shutil.rmtree(folder)


def linked_class(photos: Path) -> None:
    (photos / "class99").symlink_to(photos / "class01")


def linked_to_itself(photos: Path) -> None:
    (photos / "class01" / "loop").symlink_to(photos)


def no_image_files(photos: Path) -> None:
    for path in list(photos.glob("*/*.png")):
        path.rename(path.with_suffix(".txt"))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (empty_folder, "photos: there must be two class folders or more"),
        (single_class, "photos: there must be two class folders or more"),
        (no_image_files, "photos: every class needs 2 images or more"),
        (linked_class, "class99: a folder must not be a symbolic link"),
        (linked_to_itself, "class01/loop: a folder must not be a symbolic link"),
    ],
)
def test_an_image_folder(spoil: Callable[[Path], None], words: str, photos: Path, refused: Refused) -> None:
    spoil(photos)
    refused("pack", "run", config(refused.place), "--local", words=(words,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "split.csv: every class folder needs a row"),
        ("class,split\n../../etc/passwd,train\n", "got '../../etc/passwd'"),
        ("class,split\n/etc/passwd,train\n", "got '/etc/passwd'"),
        ("class;split\nclass00;train\n", "split.csv, row 2"),
        ("class,split\n" + "x" * 200_000 + ",train\n", "split.csv: not a readable CSV"),
        ("class,split\n\0,train\n", "split.csv"),
    ],
    ids=["empty", "outside", "absolute", "semicolons", "endless_field", "nul"],
)
def test_a_list_of_splits(text: str, words: str, photos: Path, refused: Refused) -> None:
    (photos / "split.csv").write_text(text)
    split = {"kind": "csv", "path": "split.csv"}
    refused("pack", "run", config(refused.place, split=split), "--local", words=(words,))


def test_cub_lists_that_lead_out_of_their_folder(refused: Refused) -> None:
    root = refused.place / "CUB_200_2011"
    root.mkdir()
    names = [f"{number % 200 + 1:03d}.Bird/{number}.jpg" for number in range(1, 11_789)]
    names[0] = "../../secret.jpg"
    (root / "images.txt").write_text("".join(f"{key} {name}\n" for key, name in enumerate(names, 1)))
    # The published counts: 5,864 images of classes 1-100.
    classes = [number % 100 + 1 + 100 * (number >= 5_864) for number in range(11_788)]
    (root / "image_class_labels.txt").write_text("".join(f"{key} {name}\n" for key, name in enumerate(classes, 1)))
    (root / "classes.txt").write_text("".join(f"{number} {number:03d}.Bird\n" for number in range(1, 201)))
    values = tiny_values(root, refused.place)
    values["data"] = {"name": "cub", "root": str(root)}
    path = write_config(refused.place / "tiny.yaml", values)
    refused(
        "pack",
        "run",
        path,
        "--local",
        words=("CUB_200_2011, images.txt: every image must lie below", "'../../secret.jpg'"),
    )


def omniglot(place: Path, members: dict[str, bytes]) -> Path:
    root = place / "omniglot"
    root.mkdir()
    for part, alphabet in (("images_background_small1", "Greek"), ("images_background_small2", "Tagalog")):
        with zipfile.ZipFile(root / f"{part}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name.format(part=part, alphabet=alphabet), content)
    values = tiny_values(root, place)
    values["data"] = {"name": "omniglot", "root": str(root), "test_alphabets": ["Tagalog"]}
    return write_config(place / "tiny.yaml", values)


PLACE = "{part}/{alphabet}/character01/01_01.png"
ARCHIVES: list[tuple[str, dict[str, bytes], str]] = [
    ("upwards", {"../{alphabet}/character01/x.png": b""}, "a member must lie below the archive, got '../Greek"),
    ("absolute", {"/{part}/a/b/x.png": b""}, "a member must lie below the archive, got '/images"),
    ("bomb", {PLACE: bytes(200_000_000)}, "a drawing takes 100000 bytes or less, got"),
    ("huge_picture", {PLACE: png(30_000, 30_000)}, "01_01 is not a readable image"),
    ("large_picture", {PLACE: png(3_000, 3_000)}, "its sides must be 105, got (3000, 3000)"),
    ("no_picture", {PLACE: b"no picture"}, "01_01 is not a readable image"),
]


@pytest.mark.parametrize(("members", "words"), [case[1:] for case in ARCHIVES], ids=[case[0] for case in ARCHIVES])
def test_an_archive(members: dict[str, bytes], words: str, refused: Refused) -> None:
    refused("pack", "run", omniglot(refused.place, members), "--local", words=(words,))


def test_an_archive_whose_directory_lies_about_a_size(refused: Refused) -> None:
    path = omniglot(refused.place, {PLACE: bytes(5_000)})
    archive = refused.place / "omniglot" / "images_background_small1.zip"
    content = archive.read_bytes()
    truth, lie = struct.pack("<I", 5_000), struct.pack("<I", 50)
    assert content.count(truth) == 2  # the local header and the directory
    archive.write_bytes(content.replace(truth, lie))
    refused("pack", "run", path, "--local", words=("01_01 is not a readable image",))
