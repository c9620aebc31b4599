"""Member models and the folded pack as MLflow models of a tracked run."""

from __future__ import annotations

import importlib.metadata
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import LoggedModel, LoggedModelOutput, LoggedModelStatus
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature
from mlflow.types import ColSpec, DataType, Schema, TensorSpec
from sqlalchemy.exc import SQLAlchemyError

import sfora_ray
from sfora_ray.config.member import MemberSpec
from sfora_ray.data.base import ImageTable
from sfora_ray.errors import TrackerError
from sfora_ray.files import sha256_of
from sfora_ray.folds import FittedFold
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.serving.packed import PackedFacts, png_of, prove_weights, write_packed
from sfora_ray.serving.quiet_pyfunc import save_model
from sfora_ray.tracking import patience, without_secrets

_DIGEST_TAG = "sfora.model_digest"
MODEL_TAG = "sfora.model"
"""Tag of a run with the address of its model, ``models:/...``."""
_EXAMPLES = 2
_PACKAGES = (
    "mlflow",
    "torch",
    "torchvision",
    "numpy",
    "pillow",
    "pydantic",
    "safetensors",
    "scipy",
    "pandas",
)


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
    _log(run, uri, run_ids["pack"], f"{run.manifest().name}-{_plain(fold)}", finished, fold, examples)


def _plain(name: str) -> str:
    """Return a name with what MLflow's model names may hold alone."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)


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
    client = MlflowClient(tracking_uri=uri)
    if client.get_run(run_id).data.tags.get(_DIGEST_TAG) == digest:
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "packed"
        facts = _facts(run, name, members, fold, examples)
        prove_weights(facts, weights)
        write_packed(folder, facts, weights, fold_path)
        try:
            with patience():
                _log_folder(folder, client, run_id, digest, facts, examples)
        except (MlflowException, SQLAlchemyError, OSError) as error:
            raise TrackerError(
                f"MLflow: model '{name}' could not be logged, got '{without_secrets(str(error), uri)}'. "
                "Look at the server."
            ) from None
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
        precision=config.training.precision,
        members=tuple(f"{spec.folder_name}.safetensors" for spec in members),
        fold=None if fold is None else "fold.safetensors",
        dim=config.model.dim if fold is None else FittedFold.load(run.fold_path(fold)).dim,
    )


def _log_folder(
    folder: Path, client: MlflowClient, run_id: str, digest: str, facts: PackedFacts, examples: ImageTable
) -> None:
    """Make the MLflow model beside the folder and link it to its run; no run is made active."""
    logged = _model_of(client, run_id, digest, facts.name)
    images = [png_of(examples.images[row]) for row in range(min(_EXAMPLES, len(examples)))]
    target = folder.with_name("model")
    save_model(
        str(target),
        mlflow_model=Model(run_id=run_id, model_id=logged.model_id),
        python_model=str(Path(__file__).with_name("pyfunc.py")),
        artifacts={"packed": str(folder)},
        code_paths=[str(Path(sfora_ray.__file__).parent)],
        pip_requirements=_requirements(facts),
        signature=_signature(facts.dim),
        input_example=pd.DataFrame({"image": images}),
    )
    client.log_model_artifacts(logged.model_id, str(target))
    if logged.status != LoggedModelStatus.READY:
        client.finalize_logged_model(logged.model_id, "READY")
    client.log_outputs(run_id, [LoggedModelOutput(logged.model_id, 0)])
    client.set_tag(run_id, MODEL_TAG, f"models:/{logged.model_id}")


def _model_of(client: MlflowClient, run_id: str, digest: str, name: str) -> LoggedModel:
    """Return the run's one model of this digest: the oldest begun, also one that a crash left unfinished, or a new one.

    A request that timed out may have been carried out all the same, so there can be more; they go.
    """
    experiment = client.get_run(run_id).info.experiment_id
    if not _models_of(client, experiment, run_id, digest):
        client.create_logged_model(experiment, name=name, source_run_id=run_id, tags={_DIGEST_TAG: digest})
    kept, *others = _models_of(client, experiment, run_id, digest)
    for other in others:
        client.delete_logged_model(other.model_id)
    return kept


def _models_of(client: MlflowClient, experiment: str, run_id: str, digest: str) -> list[LoggedModel]:
    wanted = f"source_run_id = '{run_id}' AND tags.`{_DIGEST_TAG}` = '{digest}'"
    found = client.search_logged_models([experiment], wanted)
    return sorted(found, key=lambda model: (model.creation_timestamp, model.model_id))


def _signature(dim: int) -> ModelSignature:
    return ModelSignature(
        inputs=Schema([ColSpec(DataType.binary, "image")]),
        outputs=Schema([TensorSpec(np.dtype(np.float32), (-1, dim))]),
    )


def _requirements(facts: PackedFacts) -> list[str]:
    packages = (*_PACKAGES, "timm") if facts.model.backbone.name == "timm" else _PACKAGES
    return [f"{name}=={importlib.metadata.version(name)}" for name in packages]
