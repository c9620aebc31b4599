"""The objectives of pytorch-metric-learning, with every hyper-parameter passed by us.

The library computes all of them but ProxyNCA's (``proxy_nca.py``): its own drops rows, so that one is written here.
"""

from sfora_ray.losses.library.batches import FastApOptions, NPairsOptions
from sfora_ray.losses.library.pairs import ContrastiveOptions, MultiSimilarityOptions, SupConOptions
from sfora_ray.losses.library.proxy_anchor import ProxyAnchor, ProxyAnchorOptions
from sfora_ray.losses.library.proxy_nca import ProxyNcaOptions, ProxyNcaPlusPlusOptions
from sfora_ray.losses.library.softmax import ArcFaceOptions, NormalizedSoftmaxOptions
from sfora_ray.losses.library.triplet import TripletOptions

__all__ = [
    "ArcFaceOptions",
    "ContrastiveOptions",
    "FastApOptions",
    "MultiSimilarityOptions",
    "NPairsOptions",
    "NormalizedSoftmaxOptions",
    "ProxyAnchor",
    "ProxyAnchorOptions",
    "ProxyNcaOptions",
    "ProxyNcaPlusPlusOptions",
    "SupConOptions",
    "TripletOptions",
]
