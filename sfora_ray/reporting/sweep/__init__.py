"""The report of a sweep: what was tried, what came of it, and what the winner's value is worth."""

from sfora_ray.reporting.sweep.report import write_sweep_report

__all__ = ["write_sweep_report"]
