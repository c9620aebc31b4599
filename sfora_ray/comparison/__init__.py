"""Packs set side by side: which differences are real, from run folders to one record."""

from sfora_ray.comparison.compare import compare
from sfora_ray.comparison.records import Comparison
from sfora_ray.comparison.source import Source

__all__ = ["Comparison", "Source", "compare"]
