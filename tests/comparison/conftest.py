from pathlib import Path

import pytest

from sfora_ray.comparison import Comparison, Source, compare
from tests.comparison.packs import source

SEEDS = "seeds=[0, 1, 2, 3]"


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Source]:
    """A noisy pack of four members and one with less noise, on the same seeds."""
    folder: Path = tmp_path_factory.mktemp("two")
    return source(folder, "plain", SEEDS, noise=1.3), source(folder, "better", SEEDS, noise=1.1)


@pytest.fixture(scope="session")
def compared(two: tuple[Source, Source]) -> Comparison:
    return compare(two)
