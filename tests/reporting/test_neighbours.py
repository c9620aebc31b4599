from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sfora_ray.errors import SforaError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.reporting.neighbours import NEIGHBOURS, QUERIES, _mix, find_neighbours
from sfora_ray.reporting.pictures import encode
from tests.reporting.synthetic import make_run


def test_neighbours_are_those_of_the_concatenation(run: RunFolder) -> None:
    finds = find_neighbours(run)
    blocks = [run.embeddings(spec, "test").embeddings for spec in run.specs()]
    rows = np.concatenate(blocks, axis=1).astype(np.float64)
    assert finds.found.shape == (QUERIES, NEIGHBOURS)
    for query, found in zip(finds.queries, finds.found, strict=True):
        distances = [((rows[query] - row) ** 2).sum() if place != query else np.inf for place, row in enumerate(rows)]
        np.testing.assert_array_equal(found, np.argsort(distances)[:NEIGHBOURS])


def test_only_finished_members_count(tmp_path: Path) -> None:
    partial = make_run(tmp_path, failed=("m00",))
    assert len(find_neighbours(partial).queries) == QUERIES
    nothing = make_run(tmp_path / "none", failed=("m00", "m01", "m02", "m03"))
    with pytest.raises(SforaError, match="no member finished"):
        find_neighbours(nothing)


@pytest.mark.parametrize(
    ("num_wrong", "num_right", "shown_wrong", "shown_right"),
    [
        (20, 20, 5, 5),
        (2, 20, 2, 8),
        (20, 3, 7, 3),
        (0, 30, 0, 10),
        (30, 0, 10, 0),
        (2, 2, 2, 2),
        (0, 0, 0, 0),
    ],
)
def test_mix(num_wrong: int, num_right: int, shown_wrong: int, shown_right: int) -> None:
    right = np.array([False] * num_wrong + [True] * num_right, dtype=np.bool_)
    chosen = _mix(right)
    assert len(set(chosen.tolist())) == len(chosen)
    assert [int((~right[chosen]).sum()), int(right[chosen].sum())] == [shown_wrong, shown_right]


@pytest.mark.parametrize(
    ("shape", "ending", "size"), [((300, 200, 3), "jpg", (64, 96)), ((28, 20, 1), "png", (20, 28))]
)
def test_pictures_are_small(tmp_path: Path, shape: tuple[int, int, int], ending: str, size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, shape).astype(np.uint8)
    content, found = encode(pixels)
    assert found == ending
    path = tmp_path / f"tile.{ending}"
    path.write_bytes(content)
    with Image.open(path) as image:
        assert image.size == size
        if ending == "png":
            np.testing.assert_array_equal(np.asarray(image), pixels[:, :, 0])
    assert encode(pixels)[0] == content
