"""Bringing the members' embeddings together through the object store, and summing moments where they lie.

The run folder is the truth; the store is transport. A block is the result of a task that reads it from the run
folder, so the driver owns it and Ray makes it again if it is lost. Blocks come back read-only and without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Literal

import ray
from ray import ObjectRef

from sfora_ray.arrays import EmbeddingTable, Float32, Int64
from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.folds import Moments
from sfora_ray.folds.moments import CHUNK_ROWS
from sfora_ray.pack.gather import PackBlocks, SplitBlocks, join
from sfora_ray.pack.run_folder import RunFolder

_SECONDS_TO_GATHER = 600.0


@ray.remote(num_cpus=0, max_retries=3)
def read_block(path: str) -> EmbeddingTable:
    """Read one member's embeddings of one split."""
    return EmbeddingTable.load(Path(path))


def gather_blocks(run: RunFolder, members: Sequence[MemberSpec]) -> PackBlocks:
    """Return the blocks of these members.

    Raises:
        SforaError: the blocks do not belong together, or did not arrive in time.
    """
    return PackBlocks(tuple(members), _gather(run, members, "train"), _gather(run, members, "test"))


def _gather(run: RunFolder, members: Sequence[MemberSpec], split: Literal["train", "test"]) -> SplitBlocks:
    refs = [read_block.remote(str(run.member(spec).embeddings_path(split).absolute())) for spec in members]
    return join(members, _arrived(refs, split), split)


def _arrived(refs: Sequence[ObjectRef[EmbeddingTable]], split: str) -> list[EmbeddingTable]:
    try:
        tables: list[EmbeddingTable] = ray.get(list(refs), timeout=_SECONDS_TO_GATHER)
    except ray.exceptions.GetTimeoutError as error:
        raise SforaError(
            f"{split} embeddings: waited {_SECONDS_TO_GATHER:g} s for {len(refs)} blocks to be read. "
            "See whether every node reaches the run folder, then run `sfora-ray pack resume`."
        ) from error
    return tables


@ray.remote(num_cpus=1, max_retries=3)
def moments_of_rows(labels: Int64, start: int, *blocks: Float32) -> Moments:
    """Sum the moments of one chunk of rows; the blocks arrive as views of the node's store."""
    rows = slice(start, start + CHUNK_ROWS)
    return Moments.of([block[rows] for block in blocks], labels[rows])


def sum_moments(split: SplitBlocks) -> Moments:
    """Return the moments of a split, chunk by chunk on the cluster, added up in the order of rows.

    The chunks are those of the sum in one process, so the bits are the same.

    Raises:
        SforaError: the sums did not arrive in time.
    """
    blocks = [ray.put(block) for block in split.blocks]
    labels = ray.put(split.labels)
    refs = [moments_of_rows.remote(labels, start, *blocks) for start in range(0, len(split.labels), CHUNK_ROWS)]
    try:
        parts: list[Moments] = ray.get(refs, timeout=_SECONDS_TO_GATHER)
    except ray.exceptions.GetTimeoutError as error:
        raise SforaError(
            f"moments: waited {_SECONDS_TO_GATHER:g} s for {len(refs)} sums over rows, each on 1 CPU. "
            "Free a CPU, then run `sfora-ray pack resume`."
        ) from error
    return reduce(add, parts)
