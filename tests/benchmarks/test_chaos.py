"""Packs struck at random moments, the short form: a driver killed, with members in processes of this machine."""

import dataclasses
import random
from pathlib import Path

import pytest

import sfora_ray.benchmarks.chaos.bench as bench
from sfora_ray.benchmarks.chaos.faults import FAULTS, Fault
from sfora_ray.benchmarks.chaos.scene import Size
from sfora_ray.benchmarks.chaos.trial import TrialOutcome
from sfora_ray.cli.chaos import outcomes_table

GOOD = TrialOutcome("driver killed", 40, (-9, 0), 7, 10, (), (), (), 12.3)
NAMES = {fault.name: fault for fault in FAULTS}


def silent(_: str) -> None:
    """Hear nothing."""


@pytest.mark.long
def test_a_killed_driver_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mlflow_store: None) -> None:
    def those(trials: int, chance: random.Random, *, local: bool) -> list[Fault]:
        return [NAMES["driver killed"]]

    monkeypatch.setattr(bench, "_in_turn", those)
    place, size = tmp_path / "chaos", Size(members=2, epochs=2)
    (outcome,) = bench.chaos_trials(1, local=True, seed=3, say=silent, folder=place, size=size)
    assert outcome.passed, (outcome, (place / "trial001/log").read_text())
    assert outcome.exit_codes == (-9, 0)


def test_every_fault_comes_once_before_any_comes_again() -> None:
    chance = random.Random(0)
    names = [fault.name for fault in bench._in_turn(2 * len(FAULTS), chance, local=False)]
    assert sorted(names[: len(FAULTS)]) == sorted(NAMES)
    assert sorted(names[len(FAULTS) :]) == sorted(NAMES)
    local = {fault.name for fault in bench._in_turn(40, chance, local=True)}
    assert local == {fault.name for fault in FAULTS if not fault.needs_ray}


@pytest.mark.parametrize(
    "changes",
    [
        {"exit_codes": (-9, 1)},
        {"redone": 11},
        {"differing": ("m00 model.safetensors",)},
        {"tracker": ("pack is RUNNING",)},
        {"left": ("1 CPU",)},
    ],
)
def test_a_trial_passes_only_if_nothing_is_wrong(changes: dict[str, object]) -> None:
    assert GOOD.passed
    bad = dataclasses.replace(GOOD, **changes)  # type: ignore[arg-type]
    assert not bad.passed
    assert outcomes_table([GOOD, bad]).row_count == 2
