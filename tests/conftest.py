import importlib
import os
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

from sfora_ray.tracking.quiet import quieten_mlflow
from tests.tiny import tiny_config, write_images
from tests.tiny_runs import PANDAS_OF_MLFLOW, Tracked, run_tracked

quieten_mlflow()
# Else each MLflow server of the tests starts seven processes for jobs that nobody gives it.
os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
# How long an example takes depends on what else the machine does.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

SHARED_FIXTURES = ("cluster", "shown", "tracked", "trained", "server")
"""Fixtures that are dear and made once: under pytest-xdist all tests that use one of them go to one worker."""
LONGEST_FIRST = (
    "cluster",
    "tests/cli/test_signals.py",
    "tests/benchmarks/test_chaos.py",
    "tests/cluster/test_processes.py",
    "shown",
    "tests/workflows/test_object_store.py",
    "tests/workflows/test_extend.py",
    "tests/pack/test_local_faults.py",
    "tests/tracking/test_absent_server.py",
    "tracked",
)
"""Groups of tests that take half a minute or more, in the order in which workers are to begin them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say to pytest-xdist which tests stay together: those of one file, or of one shared fixture."""
    if not hasattr(config, "workerinput"):
        return
    groups = {item: _group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    ranks = {group: rank for rank, group in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(groups[item], len(ranks)))


def _group(item: pytest.Item) -> str:
    used = getattr(item, "fixturenames", ())
    return next((name for name in SHARED_FIXTURES if name in used), item.nodeid.partition("::")[0])


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
    made = SqlAlchemyStore(f"sqlite:///{place}/mlflow.db", (place / "mlruns").as_uri())
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
