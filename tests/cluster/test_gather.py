import logging
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import ray
from ray import ObjectRef

from sfora_ray.arrays import EmbeddingTable, Float32, l2_normalize
from sfora_ray.cluster.gather import arrived, gather_blocks, read_block, sum_moments
from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import DataError, SforaError
from sfora_ray.folds import Moments
from sfora_ray.folds.moments import CHUNK_ROWS
from sfora_ray.pack.gather import PackBlocks, SplitBlocks
from sfora_ray.pack.run_folder import RunFolder
from tests.cluster.conftest import new_run
from tests.tiny import tiny_config

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]


def table_of(rows: int, seed: int = 0) -> EmbeddingTable:
    generator = np.random.default_rng(seed)
    embeddings = l2_normalize(generator.normal(size=(rows, 6)).astype(np.float32))
    ids = np.array([str(row) for row in range(rows)])
    return EmbeddingTable(ids, np.sort(np.random.default_rng(rows).integers(0, 40, rows)), embeddings)


def blocks_of(rows: int) -> PackBlocks:
    tables = [table_of(rows, seed) for seed in range(2)]
    split = SplitBlocks(tables[0].ids, tables[0].labels, tuple(table.embeddings for table in tables))
    return PackBlocks((), split, split)


def assert_same_moments(there: Moments, here: Moments) -> None:
    for field in fields(Moments):
        assert np.array_equal(getattr(there, field.name), getattr(here, field.name)), field.name


@pytest.mark.parametrize("rows", [5, CHUNK_ROWS, 2 * CHUNK_ROWS + 3])
def test_sums_on_the_cluster_have_the_bits_of_sums_in_one_process(rows: int) -> None:
    gathered = blocks_of(rows)
    assert_same_moments(sum_moments(gathered, 0.6), Moments.of(gathered.train.blocks, gathered.train.labels))


def test_blocks_that_would_fill_the_store_are_summed_here(caplog: pytest.LogCaptureFixture) -> None:
    gathered = blocks_of(50)
    with caplog.at_level(logging.WARNING):
        sums = sum_moments(gathered, 1e-9)
    assert_same_moments(sums, Moments.of(gathered.train.blocks, gathered.train.labels))
    assert "they are summed here" in caplog.text
    assert "resources.object_store_fraction" in caplog.text


@pytest.fixture
def run(images: Path, tmp_path: Path) -> RunFolder:
    made = new_run(tiny_config(images, tmp_path, "seeds=[0, 1]"))
    for spec in made.specs():
        for split in ("train", "test"):
            table_of(30, spec.seed).save(made.member(spec).path / f"embeddings.{split}.npz")
    return made


def embeddings(blocks: PackBlocks) -> list[Float32]:
    return [*blocks.train.blocks, *blocks.test.blocks]


def test_what_the_store_cannot_hold_is_read_from_the_run_folder(
    run: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    members: tuple[MemberSpec, ...] = run.specs()
    through = gather_blocks(run, members, 0.6)
    assert "read from the run folder" not in caplog.text
    with caplog.at_level(logging.WARNING):
        past = gather_blocks(run, members, 1e-9)
    assert "embeddings: 0.0 MB are more than 1e-09" in caplog.text
    for one, other in zip(embeddings(through), embeddings(past), strict=True):
        assert np.array_equal(one, other)


@ray.remote(num_cpus=0)
class Owner:
    """Puts a table into the store; with its process the store loses it."""

    def put(self, table: EmbeddingTable) -> list[ObjectRef[EmbeddingTable]]:
        return [ray.put(table)]


@pytest.fixture
def lost() -> ObjectRef[EmbeddingTable]:
    owner = Owner.remote()  # type: ignore[attr-defined]
    refs: list[ObjectRef[EmbeddingTable]] = ray.get(owner.put.remote(table_of(50_000)), timeout=60)
    ray.kill(owner)
    time.sleep(1)  # so that the death is known
    return refs[0]


def test_a_lost_table_is_read_again(
    lost: ObjectRef[EmbeddingTable], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, kept = tmp_path / "lost.npz", tmp_path / "kept.npz"
    table_of(20).save(path)
    table_of(30, 1).save(kept)
    with caplog.at_level(logging.WARNING):
        first, second = arrived([lost, read_block.remote(str(kept))], [path, kept], seconds=60)
    assert np.array_equal(first.embeddings, table_of(20).embeddings)
    assert np.array_equal(second.embeddings, table_of(30, 1).embeddings)
    assert caplog.text.count("read again") == 1


@ray.remote(num_cpus=0)
def sleeps() -> EmbeddingTable:
    time.sleep(30)
    raise AssertionError("nobody waits so long")


def test_waiting_has_an_end_and_says_for_what(tmp_path: Path) -> None:
    ref = sleeps.remote()
    with pytest.raises(SforaError, match=r"slow.npz of 1 members: waited 0.2 s for tasks to read"):
        arrived([ref], [tmp_path / "slow.npz"], seconds=0.2)
    ray.cancel(ref, force=True)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "damaged.npz"
    path.write_bytes(b"no table")
    with pytest.raises(DataError, match=r"damaged\.npz: not a readable embedding table"):
        arrived([read_block.remote(str(path))], [path], seconds=60)
