"""The report of a comparison of packs: one self-contained page, the same as Markdown, the figures, and the record."""

from sfora_ray.reporting.comparison.report import ComparisonPaths, write_comparison

__all__ = ["ComparisonPaths", "write_comparison"]
