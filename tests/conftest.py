from pathlib import Path

import pytest

from sfora_ray.tracking.quiet import quieten_mlflow
from tests.tiny import tiny_config, write_images
from tests.tiny_runs import Tracked, run_tracked

quieten_mlflow()


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny image folder: 12 classes of 8 images of 16 x 16; tests read it and change nothing."""
    return write_images(tmp_path_factory.mktemp("images") / "photos")


@pytest.fixture(scope="session")
def tracked(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Tracked:
    """A pack run from beginning to end with local members and MLflow over SQLite; tests may tell it again."""
    place = tmp_path_factory.mktemp("tracked")
    uri = f"sqlite:///{place}/mlflow.db"
    return run_tracked(tiny_config(images, place, f"tracking={{uri: '{uri}'}}"), uri)
