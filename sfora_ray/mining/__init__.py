"""Mining: which pairs and triplets of a batch are worth a gradient.

A new miner is one file with its options and its module, and one line in :data:`MINERS`.
"""

from sfora_ray.mining.base import Miner, MinerOptions
from sfora_ray.mining.pairs import HdcOptions, MultiSimilarityMinerOptions, PairMarginMinerOptions
from sfora_ray.mining.triplets import BatchHardOptions, SemiHardOptions

MINERS: dict[str, type[MinerOptions]] = {
    "multi_similarity": MultiSimilarityMinerOptions,
    "pair_margin": PairMarginMinerOptions,
    "semi_hard": SemiHardOptions,
    "batch_hard": BatchHardOptions,
    "hdc": HdcOptions,
}

__all__ = [
    "MINERS",
    "BatchHardOptions",
    "HdcOptions",
    "Miner",
    "MinerOptions",
    "MultiSimilarityMinerOptions",
    "PairMarginMinerOptions",
    "SemiHardOptions",
]
