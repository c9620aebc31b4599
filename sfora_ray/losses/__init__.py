"""Objectives: what a batch of embeddings is trained towards.

A new loss is one file with its options and its module, and one line in :data:`LOSSES`.
"""

from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.hist import HistOptions
from sfora_ray.losses.library import ProxyAnchorOptions

LOSSES: dict[str, type[LossOptions]] = {"hist": HistOptions, "proxy_anchor": ProxyAnchorOptions}

__all__ = ["LOSSES", "HistOptions", "LossOptions", "Objective", "ProxyAnchorOptions"]
