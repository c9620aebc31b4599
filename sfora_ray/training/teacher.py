"""A trained teacher: its file, its network, and what it has seen.

What is told beside the file, in its member folder, is believed: ``spec.json`` and ``embeddings.train.npz``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.config.pack import PackConfig
from sfora_ray.data.base import ImageTable
from sfora_ray.data.unreadable import names_of
from sfora_ray.errors import InputError, WeightsError
from sfora_ray.files import read_json
from sfora_ray.models import Embedder, install_weights, read_weights


def prove_teacher(config: PackConfig, embedder: Embedder, test: ImageTable) -> tuple[str, ...]:
    """Prove that a trained teacher, if there is one, can teach such a student; return what is worth knowing of it.

    Args:
        config: what is to be trained.
        embedder: a student.
        test: what students are scored on.

    Raises:
        InputError: its file is absent, damaged or of another network, or it has trained on images of ``test``.
    """
    path = config.recipe.teacher_file
    if path is None:
        return ()
    weights, spec = read_weights(path), _spec(path.parent / "spec.json")
    if spec:
        _refuse_another_network(config, path, spec["model"])
    install_weights(copy.deepcopy(embedder), weights, source=f"recipe checkpoint {path}")
    return (*_what_it_saw(config, path, spec, test), *_what_it_may_have_seen(config, spec))


def _spec(path: Path) -> dict[str, Any]:
    """Return the parts of the teacher's own configuration that matter here; nothing where it is not told."""
    if not path.is_file():
        return {}
    try:
        theirs = read_json(path)["config"]
        return {"model": {**theirs["model"]}, "data": theirs["data"]["name"], "selection": {**theirs["selection"]}}
    except (InputError, KeyError, TypeError) as error:
        raise WeightsError(
            f"{path}: must tell the teacher's configuration, got {error!r}. Restore the file."
        ) from error


def _refuse_another_network(config: PackConfig, path: Path, model: Mapping[str, Any]) -> None:
    """Compare what leaves no trace in the names and shapes of weights as well, such as pooling."""
    theirs, ours = _shape_of(model), _shape_of(config.model.model_dump(mode="json"))
    differing = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    if differing:
        told = ", ".join(f"{key} {theirs.get(key)!r} (here {ours.get(key)!r})" for key in differing)
        raise WeightsError(
            f"recipe checkpoint {path}: a teacher must have the network of its student, got one with {told}. "
            "Set model to the teacher's, or choose another teacher."
        )


def _shape_of(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides what a trained network computes, younger keys at their default.

    That is all but what it started from and what acts in training alone.
    """
    backbone = {key: value for key, value in model["backbone"].items() if key != "weights"}
    shape = {"pooling_k": 1, **model, "backbone": backbone}
    return {key: value for key, value in shape.items() if key != "frozen_batch_norm"}


def _what_it_saw(config: PackConfig, path: Path, spec: Mapping[str, Any], test: ImageTable) -> tuple[str, ...]:
    """Refuse a teacher that has trained on test images; say so where that cannot be known."""
    table = path.parent / "embeddings.train.npz"
    if not spec or not table.is_file():
        return (
            f"recipe checkpoint {path}: nothing beside it tells what it was trained on; it must not be test classes",
        )
    if spec["data"] != config.data.name:
        return (
            f"recipe checkpoint {path}: it was trained on {spec['data']}, of which no class may be a test class here",
        )
    seen = sorted(set(EmbeddingTable.load(table).ids.tolist()) & set(test.ids))
    if seen:
        raise WeightsError(
            f"recipe checkpoint {path}: a teacher must not have trained on test images, got {len(seen)} of "
            f"{len(test.ids)} ({names_of(seen)}). Choose one that was trained on the training classes of this split."
        )
    return ()


def _what_it_may_have_seen(config: PackConfig, spec: Mapping[str, Any]) -> tuple[str, ...]:
    ours = config.selection.model_dump(mode="json")
    if config.selection.split != "validation" or spec.get("selection") == ours:
        return ()
    return ("the teacher may have trained on the classes held out here, on which epochs are selected",)
