"""What a member starts from: the weights of its backbone and, with a trained teacher, those of the teacher."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import InputError, WeightsError
from sfora_ray.files import read_json, sha256_of
from sfora_ray.models import Embedder, install_weights, read_weights, weights_identity
from sfora_ray.models.weights import existing_file


def starting_weights(config: PackConfig) -> str:
    """Return the identity of the backbone's weights and of a trained teacher's, or ``none`` for a random start.

    Raises:
        WeightsError: a file is absent, or the teacher is a member with another network.
    """
    own = weights_identity(config.model)
    teacher = config.recipe.teacher_file
    if teacher is None:
        return own
    _refuse_another_network(config, existing_file(teacher))
    return f"{own}; teacher {teacher} sha256:{sha256_of(teacher)}"


def refuse_unfit_teacher(config: PackConfig, embedder: Embedder) -> None:
    """Read a trained teacher's file, if there is one, and prove that its weights are those of such an ``embedder``.

    Raises:
        WeightsError: the file is absent, damaged, or of another network.
    """
    teacher = config.recipe.teacher_file
    if teacher is not None:
        install_weights(copy.deepcopy(embedder), read_weights(teacher), source=str(teacher))


def _refuse_another_network(config: PackConfig, teacher: Path) -> None:
    """Compare with the teacher's ``spec.json``, where its member folder has one.

    Pooling and a LayerNorm without weights leave no trace in a file of weights, so that its names and shapes may fit a
    network that computes something else.
    """
    spec = teacher.parent / "spec.json"
    if not spec.is_file():
        return
    try:
        theirs = _shape_of(read_json(spec)["config"]["model"])
    except (InputError, KeyError, TypeError) as error:
        raise WeightsError(f"{spec}: must tell the teacher's network, got {error!r}. Restore the file.") from error
    ours = _shape_of(config.model.model_dump(mode="json"))
    differing = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    if differing:
        told = ", ".join(f"{key} {theirs.get(key)!r} (here {ours.get(key)!r})" for key in differing)
        raise WeightsError(
            f"recipe checkpoint {teacher}: a teacher must have the network of its student, got one with {told}. "
            "Set model to the teacher's, or choose another teacher."
        )


def _shape_of(model: dict[str, Any]) -> dict[str, Any]:
    """Return what decides what a trained network computes, younger keys at their default.

    That is all but what it started from and what acts in training alone.
    """
    backbone = {key: value for key, value in model["backbone"].items() if key != "weights"}
    shape = {"pooling_k": 1, **model, "backbone": backbone}
    return {key: value for key, value in shape.items() if key != "frozen_batch_norm"}
