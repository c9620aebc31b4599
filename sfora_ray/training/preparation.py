"""The data of one member: what it trains on, is selected on, and is scored on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.data.base import ImageDataset, ImageTable
from sfora_ray.data.cache import cached
from sfora_ray.data.holdout import hold_out_classes, hold_out_fold
from sfora_ray.data.loader import OnUnreadable
from sfora_ray.data.unreadable import UnreadableImage, without
from sfora_ray.errors import DataError
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.unreadable import UnreadableImages


@dataclass(frozen=True)
class MemberData:
    """Tables of one member.

    Attributes:
        dataset: all of it, decoded or cached.
        train: the rows that batches are drawn from.
        validation: held-out training classes, where the epoch is selected on them.
        images_decoded: how many images had to be decoded to fill the node's cache.
        left_out: ids of the images that could not be read when the pack started.
        on_unreadable: told of training images that others stand in for; without it such an image is an error.
    """

    dataset: ImageDataset
    train: ImageTable
    validation: ImageTable | None
    images_decoded: int
    left_out: tuple[str, ...] = ()
    on_unreadable: OnUnreadable | None = None


def prepare_data(
    config: PackConfig, on_progress: Callable[[int, int], None], left_out: Sequence[str] | None = None
) -> MemberData:
    """Load the data set, fill the node's cache once, and hold out validation classes where asked.

    Args:
        config: says what becomes of unreadable images.
        on_progress: called with ``(done, total)`` while images are decoded.
        left_out: ids that the pack has left out since it started; None at its start: what cannot be read now.

    Raises:
        DataError: more images cannot be read than may, or one that members are scored on.
    """
    cache_dir = config.cache_dir.expanduser()
    filled = cached(
        config.data.load(cache_dir),
        cache_dir,
        limit_bytes=int(config.input.cache_gigabytes * 2**30),
        on_progress=on_progress,
        tolerate=config.input.tolerated + len(left_out or ()),
    )
    gone = tuple(image.id for image in filled.unreadable) if left_out is None else tuple(left_out)
    dataset = without(filled.dataset, gone)
    _refuse_unscored(dataset.test, filled.unreadable)
    train, validation = split_train(config, dataset)
    return MemberData(dataset, train, validation, filled.num_decoded, gone)


def member_data(spec: MemberSpec, folder: MemberFolder, on_progress: Callable[[int, int], None]) -> MemberData:
    """Prepare the data as the pack saw them when it started, and count images that become unreadable later.

    Raises:
        DataError: the rows are not those of the pack, or images cannot be read.
    """
    data = prepare_data(spec.config, on_progress, spec.left_out)
    if spec.dataset_digest and data.dataset.digest != spec.dataset_digest:
        raise DataError(
            f"data {data.dataset.name}: the images and classes must be those that the pack started with, of digest "
            f"{spec.dataset_digest}, got {data.dataset.digest}. Put the old files back, or run a new pack."
        )
    if not spec.config.input.tolerated:
        return data
    return replace(data, on_unreadable=UnreadableImages(folder, spec.config.input.tolerated).add)


def split_train(config: PackConfig, dataset: ImageDataset) -> tuple[ImageTable, ImageTable | None]:
    """Return the table to train on and, for selection on ``validation``, the held-out classes."""
    if config.selection.split != "validation":
        return dataset.train, None
    selection = config.selection
    if selection.validation_folds is not None:
        return hold_out_fold(
            dataset.train,
            folds=selection.validation_folds,
            fold=selection.validation_fold,
            seed=selection.validation_seed,
        )
    return hold_out_classes(dataset.train, fraction=selection.validation_fraction, seed=selection.validation_seed)


def _refuse_unscored(test: ImageTable, unreadable: Sequence[UnreadableImage]) -> None:
    """Members are compared and joined image by image, so that none may lack a test image that another has."""
    scored = set(test.ids)
    for image in unreadable:
        if image.id in scored:
            raise DataError(f"{image.reason} Members are scored on it, so that it cannot be skipped any more.")
