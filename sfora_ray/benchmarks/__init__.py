"""Benchmarks: each a ratio of two things timed in turn in one run; see ``base``."""

from collections.abc import Callable

from sfora_ray.benchmarks import curve, gpa, hist, metrics, pack, step, tracking
from sfora_ray.benchmarks.base import BenchmarkResult

BENCHMARKS: dict[str, Callable[..., BenchmarkResult]] = {
    "step": step.run,
    "hist": hist.run,
    "metrics": metrics.run,
    "curve": curve.run,
    "gpa": gpa.run,
    "pack": pack.run,
    "tracking": tracking.run,
}

__all__ = ["BENCHMARKS", "BenchmarkResult"]
