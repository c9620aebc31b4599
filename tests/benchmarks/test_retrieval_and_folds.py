"""Benchmarks run, and refuse two sides that computed different answers. No time is asserted."""

from collections.abc import Callable

import pytest

from sfora_ray.benchmarks import curve, gpa, metrics
from sfora_ray.benchmarks.base import BenchmarkResult, time_in_turn


@pytest.mark.parametrize("run", [metrics.run, curve.run, gpa.run])
def test_runs_small_and_both_sides_agree(run: Callable[..., BenchmarkResult]) -> None:
    found = run(quick=True)
    assert found.ours_seconds > 0
    assert found.theirs_seconds > 0
    speed_up = found.mark.startswith(">=")
    expected = found.theirs_seconds / found.ours_seconds if speed_up else found.ours_seconds / found.theirs_seconds
    assert found.ratio == pytest.approx(expected)


@pytest.mark.parametrize(
    ("mark", "ratio", "reached"),
    [(">= 3", 3.1, True), (">= 3", 2.9, False), ("<= 1.3", 1.2, True), ("<= 1.3", 1.4, False)],
)
def test_marks(mark: str, ratio: float, reached: bool) -> None:
    assert BenchmarkResult("x", 1, 1, ratio, mark, 0, "").reached is reached


def test_sides_take_turns() -> None:
    calls: list[str] = []
    timing = time_in_turn(lambda: calls.append("ours"), lambda: len(calls), 3)
    assert calls == ["ours"] * 3
    assert timing.theirs == 3
