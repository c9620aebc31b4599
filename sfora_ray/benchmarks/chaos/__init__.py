"""Chaos: packs that are struck at random moments and resumed must end as if nothing had happened."""

from sfora_ray.benchmarks.chaos.bench import chaos_trials
from sfora_ray.benchmarks.chaos.trial import TrialOutcome

__all__ = ["TrialOutcome", "chaos_trials"]
