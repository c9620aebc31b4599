"""How sure a number is: intervals over seeds, classes and subsets of members."""

from sfora_ray.statistics.intervals import Interval, cluster_bootstrap, paired_interval, t_interval
from sfora_ray.statistics.subsets import Subset, choose_subsets, curve_subsets, subset_interval

__all__ = [
    "Interval",
    "Subset",
    "choose_subsets",
    "cluster_bootstrap",
    "curve_subsets",
    "paired_interval",
    "subset_interval",
    "t_interval",
]
