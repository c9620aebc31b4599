from pathlib import Path

import pytest

from sfora_ray.config.pack import PackConfig
from sfora_ray.training.selection import Best, better, is_due
from tests.tiny import tiny_config


def config(tmp_path: Path, *overrides: str) -> PackConfig:
    return tiny_config(tmp_path / "none", tmp_path, *overrides)


def chosen(settings: PackConfig, values: list[dict[str, dict[str, float]]]) -> Best | None:
    best: Best | None = None
    for epoch, metrics in enumerate(values, start=1):
        best = better(settings, best, epoch, metrics) or best
    return best


def metrics(test: float, validation: float = 0.0, map_at_r: float = 0.0) -> dict[str, dict[str, float]]:
    return {
        "test": {"recall_at_1": test, "map_at_r": map_at_r},
        "validation": {"recall_at_1": validation, "map_at_r": map_at_r},
    }


def test_of_equals_the_earlier_epoch_stays(tmp_path: Path) -> None:
    settings = config(tmp_path, "training.epochs=4")
    assert chosen(settings, [metrics(v) for v in (0.5, 0.7, 0.7, 0.6)]) == Best(2, 0.7)


def test_validation_does_not_look_at_the_test_classes(tmp_path: Path) -> None:
    settings = config(tmp_path, "selection.split=validation", "training.epochs=3")
    assert chosen(settings, [metrics(0.1, 0.9), metrics(0.9, 0.1), metrics(0.5, 0.5)]) == Best(1, 0.9)


def test_the_metric_can_be_chosen(tmp_path: Path) -> None:
    settings = config(tmp_path, "selection.metric=map_at_r", "training.epochs=2")
    assert chosen(settings, [metrics(0.9, map_at_r=0.1), metrics(0.1, map_at_r=0.2)]) == Best(2, 0.2)


def test_last_takes_the_last_epoch_whatever_it_is_worth(tmp_path: Path) -> None:
    settings = config(tmp_path, "selection.split=last", "training.epochs=3")
    best = chosen(settings, [metrics(0.9), metrics(0.8), metrics(0.1)])
    assert best is not None
    assert best.epoch == 3


@pytest.mark.parametrize(
    ("epochs", "every", "due"), [(7, 3, [3, 6, 7]), (4, 1, [1, 2, 3, 4]), (3, 5, [3]), (6, 3, [3, 6])]
)
def test_every_so_many_epochs_and_the_last(tmp_path: Path, epochs: int, every: int, due: list[int]) -> None:
    settings = config(tmp_path, f"training={{epochs: {epochs}, evaluate_every: {every}}}")
    assert [epoch for epoch in range(1, epochs + 1) if is_due(settings, epoch)] == due
