"""What a member starts from: a trained teacher is named by its digest, and has the network of its student."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import WeightsError
from sfora_ray.files import sha256_of
from sfora_ray.training.preflight import dry_plan, preflight
from tests.tiny import tiny_config
from tests.training.interrupted import train


@pytest.fixture(scope="module")
def teacher(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished member's weights, its spec beside them as in a run folder."""
    folder = tmp_path_factory.mktemp("teacher") / "member"
    train(images, folder, "recipe={name: plain}", epochs=2)
    config = tiny_config(images, folder, "recipe={name: plain}")
    (folder / "spec.json").write_text(f'{{"config": {config.model_dump_json()}}}')
    return folder / "model.safetensors"


def taught(images: Path, folder: Path, teacher: Path, *overrides: str) -> PackConfig:
    recipe = f"recipe={{name: distillation, teacher: checkpoint, checkpoint: '{teacher}'}}"
    return tiny_config(images, folder, recipe, *overrides)


def test_a_teacher_is_named_with_its_digest(images: Path, tmp_path: Path, teacher: Path) -> None:
    plan = preflight(taught(images, tmp_path, teacher))
    assert plan.weights == f"none; teacher {teacher} sha256:{sha256_of(teacher)}"


def test_it_teaches_a_member_of_another_objective(images: Path, tmp_path: Path, teacher: Path) -> None:
    recipe = f"recipe={{name: distillation, teacher: checkpoint, checkpoint: '{teacher}'}}"
    result = train(images, tmp_path / "member", recipe, "loss={name: supcon}", epochs=2)
    assert result.status == "finished"


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("model.pooling=max", "pooling 'avg_max' (here 'max')"),
        ("model.layer_norm=false", "layer_norm True (here False)"),
    ],
)
def test_a_network_that_its_weights_do_not_tell_apart_is_refused(
    images: Path, tmp_path: Path, teacher: Path, override: str, told: str
) -> None:
    with pytest.raises(WeightsError, match="must have the network of its student") as caught:
        preflight(taught(images, tmp_path, teacher, override))
    assert told in str(caught.value)


def test_a_teacher_may_have_trained_with_other_batch_statistics(images: Path, tmp_path: Path, teacher: Path) -> None:
    """What is frozen in training computes nothing else afterwards."""
    plan = preflight(taught(images, tmp_path, teacher, "model.frozen_batch_norm=true"))
    assert "teacher" in plan.weights


@pytest.mark.parametrize(
    ("content", "said"), [(b"not a model", "must be a whole"), (None, "must be those of this network")]
)
def test_a_file_that_is_no_such_teacher_is_refused_before_anything_starts(
    images: Path, tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "teacher.safetensors"
    if content is None:
        save_file({"foreign": torch.zeros(2)}, path)
    else:
        path.write_bytes(content)
    with pytest.raises(WeightsError, match=said) as caught:
        preflight(taught(images, tmp_path, path))
    assert str(path) in str(caught.value)


def test_a_teacher_that_saw_test_images_is_refused(images: Path, tmp_path: Path, teacher: Path) -> None:
    swapped = "data.split={kind: halves}"
    ours = preflight(taught(images, tmp_path, teacher))
    assert ours.notes == preflight(tiny_config(images, tmp_path)).notes
    with pytest.raises(WeightsError, match=r"must not have trained on test images, got \d+ of \d+") as caught:
        preflight(taught(images, tmp_path, teacher, swapped))
    assert "Choose one that was trained" in str(caught.value)


@pytest.mark.parametrize(
    ("gone", "changed", "said"),
    [
        ("spec.json", {}, "nothing beside it tells"),
        ("embeddings.train.npz", {}, "nothing beside it tells"),
        ("", {"data": {"name": "cub"}}, "it was trained on cub"),
        ("", {}, "may have trained on the classes held out here"),
    ],
)
def test_what_cannot_be_known_of_a_teacher_is_told(
    images: Path, tmp_path: Path, teacher: Path, gone: str, changed: dict[str, object], said: str
) -> None:
    folder = shutil.copytree(teacher.parent, tmp_path / "copy", ignore=shutil.ignore_patterns("checkpoint", gone))
    if changed:
        spec = json.loads((folder / "spec.json").read_text())
        (folder / "spec.json").write_text(json.dumps({"config": {**spec["config"], **changed}}))
    selection = () if gone or changed else ("selection={split: validation}",)
    plan = preflight(taught(images, tmp_path, folder / teacher.name, *selection))
    assert [note for note in plan.notes if said in note]


def test_a_plan_needs_no_teacher_at_hand(tmp_path: Path, images: Path) -> None:
    config = taught(images, tmp_path, tmp_path / "absent.safetensors")
    with pytest.raises(WeightsError, match=r"absent\.safetensors"):
        preflight(config)
    elsewhere = {**config.plain(), "data": {"name": "cub", "root": str(tmp_path)}}
    plan = dry_plan(PackConfig.model_validate(elsewhere))
    assert "not at hand yet" in plan.notes[0]
