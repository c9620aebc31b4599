from pathlib import Path

import pytest

from tests.tiny import write_images


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny image folder: 12 classes of 8 images of 16 x 16."""
    return write_images(tmp_path_factory.mktemp("images") / "photos")
