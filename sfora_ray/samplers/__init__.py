"""Samplers: which images make a batch.

A new sampler is one file with its options and its record, and one line in :data:`SAMPLERS`.
"""

from sfora_ray.samplers.base import Sampler, SamplerOptions
from sfora_ray.samplers.exhaustive import ExhaustiveOptions
from sfora_ray.samplers.hierarchical import HierarchicalOptions
from sfora_ray.samplers.mining_weighted import MiningWeightedOptions
from sfora_ray.samplers.n_pairs import NPairsSamplerOptions
from sfora_ray.samplers.per_class import PerClassOptions
from sfora_ray.samplers.random_batches import RandomOptions

SAMPLERS: dict[str, type[SamplerOptions]] = {
    "per_class": PerClassOptions,
    "per_class_exhaustive": ExhaustiveOptions,
    "random": RandomOptions,
    "hierarchical": HierarchicalOptions,
    "mining_weighted": MiningWeightedOptions,
    "n_pairs": NPairsSamplerOptions,
}

__all__ = [
    "SAMPLERS",
    "ExhaustiveOptions",
    "HierarchicalOptions",
    "MiningWeightedOptions",
    "NPairsSamplerOptions",
    "PerClassOptions",
    "RandomOptions",
    "Sampler",
    "SamplerOptions",
]
