"""The gather contract: the members' rows belong to the same images, in the same order, or there is no pack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfora_ray.arrays import EmbeddingTable, Float32, Int64, Strings
from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import SforaError


@dataclass(frozen=True)
class SplitBlocks:
    """One split as all members see it: ``blocks[m][i]`` is image ``ids[i]`` by member ``m``, ``(N, D)`` each.

    ``coarse_labels`` is None where the data set has no coarse classes.
    """

    ids: Strings
    labels: Int64
    blocks: tuple[Float32, ...]
    coarse_labels: Int64 | None = None


@dataclass(frozen=True)
class PackBlocks:
    """The blocks of the members that finished."""

    members: tuple[MemberSpec, ...]
    train: SplitBlocks
    test: SplitBlocks


def join(members: Sequence[MemberSpec], tables: Sequence[EmbeddingTable], split: str) -> SplitBlocks:
    """Put the members' tables of one split side by side.

    Raises:
        SforaError: ids, labels or widths differ, or a row is not finite; names the member, the row and the image.
    """
    first = tables[0]
    for member, table in zip(members, tables, strict=True):
        _same_rows(member, table, members[0], first, split)
        _finite(member, table, split)
    return SplitBlocks(first.ids, first.labels, tuple(table.embeddings for table in tables), first.coarse_labels)


def _same_rows(member: MemberSpec, table: EmbeddingTable, other: MemberSpec, first: EmbeddingTable, split: str) -> None:
    place = f"{split} embeddings of {member.folder_name}"
    if table.embeddings.shape[0] != first.embeddings.shape[0] or not np.array_equal(table.ids, first.ids):
        raise SforaError(
            f"{place}: the images differ from those of {other.folder_name}, got {len(table.ids)} against "
            f"{len(first.ids)} rows. The data changed between the two trainings: train the pack anew."
        )
    if table.embeddings.shape[1] != first.embeddings.shape[1]:
        raise SforaError(
            f"{place}: the width differs from that of {other.folder_name}, got {table.embeddings.shape[1]} against "
            f"{first.embeddings.shape[1]}. Train the pack anew."
        )
    if not np.array_equal(table.labels, first.labels):
        raise SforaError(f"{place}: the labels differ from those of {other.folder_name}. Train the pack anew.")
    if not _same_coarse(table.coarse_labels, first.coarse_labels):
        raise SforaError(f"{place}: the coarse labels differ from those of {other.folder_name}. Train the pack anew.")


def _same_coarse(labels: Int64 | None, others: Int64 | None) -> bool:
    if labels is None or others is None:
        return labels is others
    return np.array_equal(labels, others)


def _finite(member: MemberSpec, table: EmbeddingTable, split: str) -> None:
    bad = np.flatnonzero(~np.isfinite(table.embeddings).all(axis=1))
    if len(bad):
        raise SforaError(
            f"{split} embeddings of {member.folder_name}: row {bad[0]} (image {table.ids[bad[0]]}) is not finite, "
            f"as are {len(bad)} in all. Remove the member's folder and run `sfora-ray pack resume`."
        )
