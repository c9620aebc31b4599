import importlib
import warnings
from pathlib import Path

import pytest

from sfora_ray.tracking.quiet import quieten_mlflow
from tests.tiny import tiny_config, write_images
from tests.tiny_runs import PANDAS_OF_MLFLOW, Tracked, run_tracked

quieten_mlflow()


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny image folder: 12 classes of 8 images of 16 x 16; tests read it and change nothing."""
    return write_images(tmp_path_factory.mktemp("images") / "photos")


@pytest.fixture(scope="session")
def mlflow_store() -> None:
    """MLflow's SQL store, imported: its models are made with a loader that SQLAlchemy warns of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The ``noload`` loader strategy is deprecated")
        importlib.import_module("mlflow.store.tracking.sqlalchemy_store")


@pytest.fixture(scope="session")
def tracked(mlflow_store: None, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Tracked:
    """A pack run from beginning to end with local members and MLflow over SQLite; tests may tell it again."""
    place = tmp_path_factory.mktemp("tracked")
    uri = f"sqlite:///{place}/mlflow.db"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_OF_MLFLOW)
        return run_tracked(tiny_config(images, place, f"tracking={{uri: '{uri}'}}"), uri)
