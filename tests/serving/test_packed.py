import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sfora_ray.arrays import Float32, l2_normalize
from sfora_ray.errors import DataError, InputError
from sfora_ray.folds import FittedFold
from sfora_ray.pack.local import blocks_from_folder
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.serving.packed import PackedFacts, PackedModel, png_of, write_packed
from tests.tiny import tiny_config
from tests.tiny_runs import Tracked, train_here


def facts_of(run: RunFolder, names: tuple[str, ...], fold: str | None, dim: int) -> PackedFacts:
    config = run.manifest().config
    return PackedFacts(
        name="tiny",
        model=config.model,
        input=config.input,
        channels=3,
        precision="fp32",
        members=names,
        fold=fold,
        dim=dim,
    )


def encoded_test_images(run: RunFolder, images: Path) -> list[bytes]:
    ids = run.embeddings(run.specs()[0], "test").ids
    return [(images / str(name)).read_bytes() for name in ids]


def cosines(first: Float32, second: Float32) -> Float32:
    return np.asarray((l2_normalize(first) * l2_normalize(second)).sum(axis=1))


@pytest.mark.parametrize("batch_size", [1, 64])
def test_one_member_gives_the_embeddings_of_the_run_folder(
    batch_size: int, tracked: Tracked, images: Path, tmp_path: Path
) -> None:
    run, spec = tracked.run, tracked.run.specs()[1]
    write_packed(tmp_path, facts_of(run, ("m.safetensors",), None, 8), [run.member(spec).model_path], None)
    rows = PackedModel.load(tmp_path).embed_bytes(encoded_test_images(run, images), batch_size)
    assert rows.dtype == np.float32
    expected = run.embeddings(spec, "test").embeddings
    assert cosines(rows, expected).min() > 0.9999
    other = run.embeddings(run.specs()[0], "test").embeddings
    assert cosines(rows, other).min() < 0.9


@pytest.mark.parametrize("fold", ["concat", "gpa", "wccn"])
def test_the_pack_gives_its_folded_blocks(fold: str, tracked: Tracked, images: Path, tmp_path: Path) -> None:
    run = tracked.run
    fitted = FittedFold.load(run.fold_path(fold))
    expected = fitted.transform(blocks_from_folder(run, run.specs()).test.blocks)
    facts = facts_of(run, ("a.safetensors", "b.safetensors"), "fold.safetensors", fitted.dim)
    write_packed(tmp_path, facts, [run.member(spec).model_path for spec in run.specs()], run.fold_path(fold))
    rows = PackedModel.load(tmp_path).embed_bytes(encoded_test_images(run, images))
    assert rows.shape == expected.shape
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert cosines(rows, expected).min() > 0.9999


@pytest.fixture(scope="module")
def single(tracked: Tracked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("single")
    run, spec = tracked.run, tracked.run.specs()[0]
    write_packed(folder, facts_of(run, ("m.safetensors",), None, 8), [run.member(spec).model_path], None)
    return folder


def test_no_images_give_no_rows(single: Path) -> None:
    assert PackedModel.load(single).embed_bytes([]).shape == (0, 8)


def test_any_size_and_kind_of_image_is_taken(single: Path) -> None:
    buffer = io.BytesIO()
    Image.new("L", (50, 31), 77).save(buffer, "JPEG")
    assert PackedModel.load(single).embed_bytes([buffer.getvalue()]).shape == (1, 8)


@pytest.mark.parametrize(
    ("content", "words"),
    [("a.png", "image 1: must be the bytes of an encoded image, got str"), (b"a.png", "image 1: not a readable image")],
)
def test_what_is_no_image_is_named_by_its_place(content: str | bytes, words: str, single: Path) -> None:
    good = png_of(np.zeros((16, 16, 3), np.uint8))
    with pytest.raises(DataError, match=words):
        PackedModel.load(single).embed_bytes([good, content])  # type: ignore[list-item]


def test_damaged_weights_are_refused(single: Path, tmp_path: Path) -> None:
    for name in ("packed.json", "m.safetensors"):
        (tmp_path / name).write_bytes((single / name).read_bytes())
    (tmp_path / "m.safetensors").write_bytes((single / "m.safetensors").read_bytes()[:-9])
    with pytest.raises(InputError, match=r"m\.safetensors: not readable as this member's weights"):
        PackedModel.load(tmp_path)


def test_a_model_is_json_and_safetensors_alone(single: Path) -> None:
    assert sorted(path.name for path in single.iterdir()) == ["m.safetensors", "packed.json"]


def test_grey_images_are_served_as_they_were_trained(images: Path, tmp_path: Path) -> None:
    run = train_here(
        tiny_config(images, tmp_path, "seeds=[0]", "data.channels=1", "schedule.warmup_epochs=0", "training.epochs=1")
    )
    (spec,) = run.specs()
    facts = facts_of(run, ("m.safetensors",), None, 8).model_copy(update={"channels": 1})
    write_packed(tmp_path / "packed", facts, [run.member(spec).model_path], None)
    rows = PackedModel.load(tmp_path / "packed").embed_bytes(encoded_test_images(run, images))
    assert cosines(rows, run.embeddings(spec, "test").embeddings).min() > 0.9999


@pytest.mark.parametrize("channels", [1, 3])
def test_png_keeps_every_pixel(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    read = np.asarray(Image.open(io.BytesIO(png_of(pixels)))).reshape(5, 7, channels)
    assert np.array_equal(read, pixels)
