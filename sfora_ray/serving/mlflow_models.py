"""Member models and the folded pack as MLflow models of a tracked run."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import mlflow
import mlflow.pyfunc
import numpy as np
import pandas as pd
from mlflow.models import Model, ModelSignature
from mlflow.types import ColSpec, DataType, Schema, TensorSpec

import sfora_ray
from sfora_ray.config.member import MemberSpec
from sfora_ray.data.base import ImageTable
from sfora_ray.errors import TrackerError
from sfora_ray.files import sha256_of
from sfora_ray.folds import FittedFold
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.serving.packed import PackedFacts, PackedModel, png_of, write_packed

_DIGEST_TAG = "sfora.model_digest"
_EXAMPLES = 2
_PACKAGES = ("torch", "torchvision", "numpy", "pillow", "pydantic", "safetensors", "scipy", "pandas")


def log_models(run: RunFolder, uri: str, run_ids: dict[str, str], fold: str, examples: ImageTable) -> None:
    """Log each finished member, and the whole pack folded by ``fold``, unless the very same is there already.

    Args:
        run: a pack whose folds are saved.
        uri: the tracking server.
        run_ids: MLflow's run of each member id, and of ``pack``.
        fold: name of the fold that joins the members.
        examples: images for the input example.
    """
    finished = run.finished()
    for spec in finished:
        _log(run, uri, run_ids[spec.id], f"{run.manifest().name}-{spec.folder_name}", (spec,), None, examples)
    _log(run, uri, run_ids["pack"], f"{run.manifest().name}-{fold.replace('+', '-')}", finished, fold, examples)


def _log(
    run: RunFolder,
    uri: str,
    run_id: str,
    name: str,
    members: Sequence[MemberSpec],
    fold: str | None,
    examples: ImageTable,
) -> None:
    weights = [run.member(spec).model_path for spec in members]
    fold_path = None if fold is None else run.fold_path(fold)
    digest = "-".join(sha256_of(path)[:12] for path in (*weights, *([fold_path] if fold_path else [])))
    client = mlflow.MlflowClient(tracking_uri=uri)
    if client.get_run(run_id).data.tags.get(_DIGEST_TAG) == digest:
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "packed"
        write_packed(folder, _facts(run, name, members, fold, examples), weights, fold_path)
        _log_folder(folder, uri, run_id, name, examples)
    client.set_tag(run_id, _DIGEST_TAG, digest)


def _facts(
    run: RunFolder, name: str, members: Sequence[MemberSpec], fold: str | None, examples: ImageTable
) -> PackedFacts:
    config = run.manifest().config
    return PackedFacts(
        name=name,
        model=config.model,
        input=config.input,
        channels=examples.images[0].shape[2],
        members=tuple(f"{spec.folder_name}.safetensors" for spec in members),
        fold=None if fold is None else "fold.safetensors",
        dim=config.model.dim if fold is None else FittedFold.load(run.fold_path(fold)).dim,
    )


def _log_folder(folder: Path, uri: str, run_id: str, name: str, examples: ImageTable) -> None:
    images = [png_of(examples.images[row]) for row in range(min(_EXAMPLES, len(examples)))]
    example = pd.DataFrame({"image": images})
    vectors = PackedModel.load(folder).embed_bytes(images)
    signature = ModelSignature(
        inputs=Schema([ColSpec(DataType.binary, "image")]),
        outputs=Schema([TensorSpec(np.dtype(np.float32), (-1, vectors.shape[1]))]),
    )
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        Model.log(
            artifact_path=None,
            flavor=mlflow.pyfunc,
            name=name,
            run_id=run_id,
            python_model=str(Path(__file__).with_name("pyfunc.py")),
            artifacts={"packed": str(folder)},
            code_paths=[str(Path(sfora_ray.__file__).parent)],
            pip_requirements=_requirements(),
            signature=signature,
            input_example=example,
        )
    except Exception as error:
        raise TrackerError(f"MLflow model '{name}': could not be logged, got {type(error).__name__}: {error}.") from error
    finally:
        mlflow.set_tracking_uri(before)


def _requirements() -> list[str]:
    import importlib.metadata

    return [f"mlflow=={mlflow.__version__}", *(f"{name}=={importlib.metadata.version(name)}" for name in _PACKAGES)]
