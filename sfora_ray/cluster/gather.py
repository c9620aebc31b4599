"""Embeddings and their sums by way of Ray's object store, or past it where they would fill it.

The run folder is the truth and the store is transport: what the store cannot hold, or has lost, is read from the
folder, and the bits are the same. Blocks come back read-only and without a copy.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Literal

import ray
from ray import ObjectRef
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from sfora_ray.arrays import EmbeddingTable, Float32, Int64
from sfora_ray.cluster.member import NO_GPU
from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.folds import Moments
from sfora_ray.folds.moments import CHUNK_ROWS
from sfora_ray.pack.gather import PackBlocks, SplitBlocks, join
from sfora_ray.pack.local import blocks_from_folder
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.home import HERE

_log = logging.getLogger(__name__)

_SECONDS_TO_GATHER = 600.0


@ray.remote(num_cpus=0, max_retries=3, runtime_env=NO_GPU)
def read_block(path: str) -> EmbeddingTable:
    """Read one member's embeddings of one split."""
    return EmbeddingTable.load(Path(path))


def gather_blocks(run: RunFolder, members: Sequence[MemberSpec], store_fraction: float) -> PackBlocks:
    """Return the blocks of these members; all of them come to this node's store if that share of it holds them.

    Raises:
        SforaError: the blocks do not belong together, or did not arrive in time.
    """
    if run.home is not HERE:
        return blocks_from_folder(run, members)  # other nodes do not see a working copy
    paths = [run.member(spec).embeddings_path(split) for spec in members for split in ("train", "test")]
    num_bytes = sum(path.stat().st_size for path in paths if path.exists())
    if not _fits(num_bytes, store_fraction):
        _log.warning("embeddings: %s; they are read from the run folder", _in_store(num_bytes, store_fraction))
        return blocks_from_folder(run, members)
    return PackBlocks(tuple(members), _gather(run, members, "train"), _gather(run, members, "test"))


def _gather(run: RunFolder, members: Sequence[MemberSpec], split: Literal["train", "test"]) -> SplitBlocks:
    paths = [run.member(spec).embeddings_path(split).absolute() for spec in members]
    refs = [read_block.remote(str(path)) for path in paths]
    return join(members, arrived(refs, paths, seconds=_SECONDS_TO_GATHER), split)


def arrived(
    refs: Sequence[ObjectRef[EmbeddingTable]], paths: Sequence[Path], *, seconds: float
) -> list[EmbeddingTable]:
    """Return the tables, those that the store has lost read again from their files.

    Raises:
        SforaError: a file is not readable, or a table did not arrive in time.
    """
    deadline = time.monotonic() + seconds
    try:
        return [_arrived(ref, path, deadline) for ref, path in zip(refs, paths, strict=True)]
    except GetTimeoutError as error:
        raise SforaError(
            f"{paths[0].name} of {len(paths)} members: waited {seconds:g} s for tasks to read them. "
            "See whether every node reaches the run folder, then run `sfora-ray pack resume`."
        ) from error


def _arrived(ref: ObjectRef[EmbeddingTable], path: Path, deadline: float) -> EmbeddingTable:
    try:
        return ray.get(ref, timeout=max(0.0, deadline - time.monotonic()))
    except (GetTimeoutError, RayTaskError):
        raise  # the latter is what the task found wrong with the file
    except RayError as error:
        _log.warning("%s: lost on the cluster (%s), read again", path, type(error).__name__)
        return EmbeddingTable.load(path)


@ray.remote(num_cpus=1, max_retries=3, runtime_env=NO_GPU)
def moments_of_rows(labels: Int64, start: int, *blocks: Float32) -> Moments:
    """Sum the moments of one chunk of rows; the blocks arrive as views of the node's store."""
    rows = slice(start, start + CHUNK_ROWS)
    return Moments.of([block[rows] for block in blocks], labels[rows])


def sum_moments(gathered: PackBlocks, store_fraction: float) -> Moments:
    """Return the moments of the train blocks, chunk by chunk on the cluster, added up in the order of rows.

    The chunks are those of the sum in one process, so the bits are the same; where the blocks, sent once more, would
    take more than that share of the store, or the cluster loses the sums, they are summed here.

    Raises:
        SforaError: the sums did not arrive in time.
    """
    split = gathered.train
    num_bytes = sum(block.nbytes for part in (split, split, gathered.test) for block in part.blocks)
    if not _fits(num_bytes, store_fraction):
        _log.warning("moments: %s; they are summed here", _in_store(num_bytes, store_fraction))
        return Moments.of(split.blocks, split.labels)
    try:
        return _sum_on_cluster(split)
    except (GetTimeoutError, RayTaskError):
        raise
    except RayError as error:
        _log.warning("moments: lost on the cluster (%s), summed here", type(error).__name__)
        return Moments.of(split.blocks, split.labels)


def _sum_on_cluster(split: SplitBlocks) -> Moments:
    blocks = [ray.put(block) for block in split.blocks]
    labels = ray.put(split.labels)
    refs = [moments_of_rows.remote(labels, start, *blocks) for start in range(0, len(split.labels), CHUNK_ROWS)]
    try:
        parts: list[Moments] = ray.get(refs, timeout=_SECONDS_TO_GATHER)
    except GetTimeoutError as error:
        raise SforaError(
            f"moments: waited {_SECONDS_TO_GATHER:g} s for {len(refs)} sums over rows, each on 1 CPU. "
            "Free a CPU, then run `sfora-ray pack resume`."
        ) from error
    return reduce(add, parts)


def _fits(num_bytes: int, fraction: float) -> bool:
    return num_bytes <= fraction * _store_bytes()


def _in_store(num_bytes: int, fraction: float) -> str:
    return (
        f"{num_bytes / 1e6:.1f} MB are more than {fraction:g} (resources.object_store_fraction) of this node's object "
        f"store of {_store_bytes() / 1e6:.1f} MB"
    )


def _store_bytes() -> float:
    """Return the size of the store of this node: whatever it holds in all, blocks come together here."""
    here = ray.get_runtime_context().get_node_id()
    nodes = [node for node in ray.nodes() if node["NodeID"] == here]  # type: ignore[no-untyped-call]
    return sum(float(node["Resources"].get("object_store_memory", 0)) for node in nodes)
