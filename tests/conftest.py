import importlib
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from sfora_ray.tracking.quiet import quieten_mlflow
from tests.groups import group_of, rank_of
from tests.tiny import tiny_config, write_images
from tests.tiny_runs import PANDAS_OF_MLFLOW, Tracked, run_tracked

quieten_mlflow()
# Else each MLflow server of the tests starts seven processes for jobs that nobody gives it.
os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
# How long an example takes depends on what else the machine does.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Share out the groups of :mod:`tests.groups` where pytest-xdist would share out files."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler  # type: ignore[no-any-return]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank_of(item.nodeid))


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
def empty_database(mlflow_store: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tracking database without runs, to be copied: MLflow makes one in a hundred steps that each reach the disk."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    place = tmp_path_factory.mktemp("database")
    made = SqlAlchemyStore(f"sqlite:///{place}/mlflow.db", (place / "mlruns").as_uri())  # type: ignore[no-untyped-call]
    made.engine.dispose()
    return place / "mlflow.db"


@pytest.fixture(scope="session")
def tracked(mlflow_store: None, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Tracked:
    """A pack run from beginning to end with local members and MLflow over SQLite; tests may tell it again."""
    place = tmp_path_factory.mktemp("tracked")
    uri = f"sqlite:///{place}/mlflow.db"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_OF_MLFLOW)
        return run_tracked(tiny_config(images, place, f"tracking={{uri: '{uri}'}}"), uri)
