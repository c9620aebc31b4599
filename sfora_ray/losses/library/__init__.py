"""The objectives that pytorch-metric-learning computes, with every hyper-parameter passed by us."""

from sfora_ray.losses.library.batches import FastApOptions, NPairsOptions
from sfora_ray.losses.library.pairs import ContrastiveOptions, MultiSimilarityOptions
from sfora_ray.losses.library.proxy_anchor import ProxyAnchor, ProxyAnchorOptions
from sfora_ray.losses.library.softmax import ArcFaceOptions, NormalizedSoftmaxOptions

__all__ = [
    "ArcFaceOptions",
    "ContrastiveOptions",
    "FastApOptions",
    "MultiSimilarityOptions",
    "NPairsOptions",
    "NormalizedSoftmaxOptions",
    "ProxyAnchor",
    "ProxyAnchorOptions",
]
