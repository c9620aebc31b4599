import pytest

from sfora_ray.pack.local import gpu_places


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
