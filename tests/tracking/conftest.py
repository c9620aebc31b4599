from collections.abc import Iterator

import pytest

from sfora_ray.tracking.quiet import quieten_mlflow
from tests.tracking.servers import serving

quieten_mlflow()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real MLflow server on loopback, over SQLite, with one worker."""
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running.uri
