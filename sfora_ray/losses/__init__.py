"""Objectives: what a batch of embeddings is trained towards.

A new loss is one file with its options and its module, and one line in :data:`LOSSES`.
"""

from sfora_ray.losses.base import LossOptions, Objective, TupleObjective
from sfora_ray.losses.contextual import ContextualOptions
from sfora_ray.losses.hist import HistOptions
from sfora_ray.losses.hist_proxy_anchor import HistProxyAnchorOptions
from sfora_ray.losses.library import (
    ArcFaceOptions,
    ContrastiveOptions,
    FastApOptions,
    MultiSimilarityOptions,
    NormalizedSoftmaxOptions,
    NPairsOptions,
    ProxyAnchorOptions,
)
from sfora_ray.losses.pfml import PfmlOptions
from sfora_ray.losses.proxy_nca import ProxyNcaOptions, ProxyNcaPlusPlusOptions
from sfora_ray.losses.roadmap import RoadmapOptions
from sfora_ray.losses.smooth_ap import SmoothApOptions
from sfora_ray.losses.supcon import SupConOptions
from sfora_ray.losses.triplet import TripletOptions

LOSSES: dict[str, type[LossOptions]] = {
    "hist": HistOptions,
    "proxy_anchor": ProxyAnchorOptions,
    "contrastive": ContrastiveOptions,
    "triplet": TripletOptions,
    "multi_similarity": MultiSimilarityOptions,
    "supcon": SupConOptions,
    "fast_ap": FastApOptions,
    "n_pairs": NPairsOptions,
    "proxy_nca": ProxyNcaOptions,
    "proxy_nca_pp": ProxyNcaPlusPlusOptions,
    "normalized_softmax": NormalizedSoftmaxOptions,
    "arcface": ArcFaceOptions,
    "contextual": ContextualOptions,
    "hist_proxy_anchor": HistProxyAnchorOptions,
    "pfml": PfmlOptions,
    "roadmap": RoadmapOptions,
    "smooth_ap": SmoothApOptions,
}

__all__ = [
    "LOSSES",
    "ArcFaceOptions",
    "ContextualOptions",
    "ContrastiveOptions",
    "FastApOptions",
    "HistOptions",
    "HistProxyAnchorOptions",
    "LossOptions",
    "MultiSimilarityOptions",
    "NPairsOptions",
    "NormalizedSoftmaxOptions",
    "Objective",
    "PfmlOptions",
    "ProxyAnchorOptions",
    "ProxyNcaOptions",
    "ProxyNcaPlusPlusOptions",
    "RoadmapOptions",
    "SmoothApOptions",
    "SupConOptions",
    "TripletOptions",
    "TupleObjective",
]
