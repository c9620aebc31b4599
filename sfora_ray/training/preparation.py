"""The data of one member: what it trains on, is selected on, and is scored on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sfora_ray.config.pack import PackConfig
from sfora_ray.data.base import ImageDataset, ImageTable
from sfora_ray.data.cache import cached
from sfora_ray.data.holdout import hold_out_classes


@dataclass(frozen=True)
class MemberData:
    """Tables of one member.

    Attributes:
        dataset: all of it, decoded or cached.
        train: the rows that batches are drawn from.
        validation: held-out training classes, where the epoch is selected on them.
        images_decoded: how many images had to be decoded to fill the node's cache.
    """

    dataset: ImageDataset
    train: ImageTable
    validation: ImageTable | None
    images_decoded: int


def prepare_data(config: PackConfig, on_progress: Callable[[int, int], None]) -> MemberData:
    """Load the data set, fill the node's cache once, and hold out validation classes where asked."""
    cache_dir = config.cache_dir.expanduser()
    limit = int(config.input.cache_gigabytes * 2**30)
    filled = cached(config.data.load(cache_dir), cache_dir, limit_bytes=limit, on_progress=on_progress)
    train, validation = split_train(config, filled.dataset)
    return MemberData(filled.dataset, train, validation, filled.num_decoded)


def split_train(config: PackConfig, dataset: ImageDataset) -> tuple[ImageTable, ImageTable | None]:
    """Return the table to train on and, for selection on ``validation``, the held-out classes."""
    if config.selection.split != "validation":
        return dataset.train, None
    selection = config.selection
    return hold_out_classes(dataset.train, fraction=selection.validation_fraction, seed=selection.validation_seed)
