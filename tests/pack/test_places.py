from pathlib import Path

import pytest

from sfora_ray.errors import ResourceError
from sfora_ray.pack.local import LocalMembers, gpu_places
from sfora_ray.pack.run_folder import RunFolder
from tests.tiny import tiny_config


@pytest.mark.parametrize(
    ("gpus", "share", "expected"),
    [
        (2, 1, [0, 1]),
        (2, 0.5, [0, 0, 1, 1]),
        (2, 0.4, [0, 0, 1, 1]),
        (1, 0.1, [0] * 10),
        (5, 2, [0, 2]),
        (0, 1, []),
        (1, 2, []),
    ],
)
def test_every_place_lies_on_whole_devices(gpus: int, share: float, expected: list[int]) -> None:
    assert gpu_places(gpus, share) == expected


def test_with_nothing_to_train_nothing_is_needed(images: Path, tmp_path: Path) -> None:
    """A pack whose members have all finished is folded and reported on a machine that could train none of them."""
    config = tiny_config(images, tmp_path, "resources.workers_per_member=2", "resources.gpus_per_worker=64")
    run = RunFolder.create(config, "none")
    with pytest.raises(ResourceError):
        LocalMembers(run, run.specs())
    assert LocalMembers(run, []).poll() == {}
