"""How a feature map becomes one vector.

``gem`` is the generalised mean of Radenovic, Tolias, Chum: Fine-tuning CNN Image Retrieval with No Human
Annotation, TPAMI 2019, eq. 3, with the power fixed at 3. ``avg_max`` is the sum of both, as in Proxy Anchor's
program. ``k_max`` is the global k-max pooling of Teh, DeVries, Taylor: ProxyNCA++, ECCV 2020, eq. 7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from torch import Tensor

from sfora_ray.precision import widened

PoolingName = Literal["avg", "max", "avg_max", "gem", "k_max"]
GEM_POWER = 3
GEM_FLOOR = 1e-6


def average(features: Tensor) -> Tensor:
    """Return the ``(B, F)`` mean over positions of ``(B, F, h, w)``."""
    return features.mean(dim=(2, 3))


def maximum(features: Tensor) -> Tensor:
    """Return the ``(B, F)`` maximum over positions of ``(B, F, h, w)``."""
    return features.amax(dim=(2, 3))


def average_plus_maximum(features: Tensor) -> Tensor:
    """Return the ``(B, F)`` sum of mean and maximum of ``(B, F, h, w)``."""
    return average(features) + maximum(features)


def generalized_mean(features: Tensor) -> Tensor:
    """Return the ``(B, F)`` cubic mean of ``(B, F, h, w)``; values below 1e-6 count as that."""
    # Cubes overflow float16 above 40, so half precision is left here.
    return average(widened(features).clamp(min=GEM_FLOOR).pow(GEM_POWER)).pow(1 / GEM_POWER)


def mean_of_largest(features: Tensor, k: int) -> Tensor:
    """Return the ``(B, F)`` mean of the ``k`` largest values of each channel of ``(B, F, h, w)``.

    One is :func:`maximum`; as many as there are positions, or more, is :func:`average`.
    """
    flat = features.flatten(2)  # (B, F, h * w)
    return flat.topk(min(k, flat.shape[2]), dim=2).values.mean(dim=2)


def pooling_of(name: PoolingName, *, k: int) -> Callable[[Tensor], Tensor]:
    """Return the pooling of this name; ``k`` is read by ``k_max`` alone."""
    return partial(mean_of_largest, k=k) if name == "k_max" else POOLINGS[name]


POOLINGS: dict[PoolingName, Callable[[Tensor], Tensor]] = {
    "avg": average,
    "max": maximum,
    "avg_max": average_plus_maximum,
    "gem": generalized_mean,
}
