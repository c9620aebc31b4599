"""How sure a number is, and a difference: intervals and tests over seeds, classes and subsets of members."""

from sfora_ray.statistics.bootstrap import bootstrap_interval
from sfora_ray.statistics.effect import Effect, effect_size
from sfora_ray.statistics.holm import holm
from sfora_ray.statistics.intervals import Interval, cluster_bootstrap, paired_interval, t_interval
from sfora_ray.statistics.paired import PairedComparison, compare_paired, seeds_for
from sfora_ray.statistics.permutation import (
    PermutationTest,
    clustered_permutation_test,
    permutation_test,
    smallest_p_value,
)
from sfora_ray.statistics.power import paired_power, seeds_needed
from sfora_ray.statistics.subsets import Subset, choose_subsets, curve_subsets, subset_interval
from sfora_ray.statistics.unpaired import WelchComparison, compare_unpaired

__all__ = [
    "Effect",
    "Interval",
    "PairedComparison",
    "PermutationTest",
    "Subset",
    "WelchComparison",
    "bootstrap_interval",
    "choose_subsets",
    "cluster_bootstrap",
    "clustered_permutation_test",
    "compare_paired",
    "compare_unpaired",
    "curve_subsets",
    "effect_size",
    "holm",
    "paired_interval",
    "paired_power",
    "permutation_test",
    "seeds_for",
    "seeds_needed",
    "smallest_p_value",
    "subset_interval",
    "t_interval",
]
