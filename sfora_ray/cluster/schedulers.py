"""Ray Tune's schedulers, as a sweep configures them, with what ended trials have shown.

Successive halving compares a trial with all that came as far before it. Tune would keep that in a pickle; here the
trials that have ended are played to a new scheduler from their records, and those under way tell their past themselves.
So a sweep that was killed stops trials by the same standard as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from ray.tune.schedulers import (
    AsyncHyperBandScheduler,
    FIFOScheduler,
    PopulationBasedTraining,
    TrialScheduler,
)

from sfora_ray.cluster.trial import EPOCH, VALUE
from sfora_ray.config.schedulers import AshaOptions, HyperbandOptions, PbtOptions
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.randomness import numpy_generator
from sfora_ray.search.distributions import Continuous
from sfora_ray.search.identity import identity_of
from sfora_ray.search.space import Space
from sfora_ray.sweep.folder import Trial
from sfora_ray.sweep.trial import WORST


def build_scheduler(config: SweepConfig, trials: Iterable[Trial]) -> TrialScheduler:
    """Return the scheduler of a sweep, which has seen the trials that have ended."""
    epochs, options = config.pack.training.epochs, config.scheduler
    if isinstance(options, PbtOptions):
        return PopulationBasedTraining(
            time_attr=EPOCH,
            metric=VALUE,
            mode="max",
            perturbation_interval=options.interval_epochs,
            quantile_fraction=options.quantile,
            custom_explore_fn=_Explorer(config.search_space, options),
            log_config=False,
        )
    if not isinstance(options, (AshaOptions, HyperbandOptions)):
        return FIFOScheduler()  # type: ignore[no-untyped-call]
    scheduler = AsyncHyperBandScheduler(
        time_attr=EPOCH,
        metric=VALUE,
        mode="max",
        max_t=epochs,
        grace_period=options.grace_epochs,
        reduction_factor=options.reduction,
        brackets=options.brackets if isinstance(options, HyperbandOptions) else 1,
    )
    for trial in trials:
        if trial.end is not None:
            _play(scheduler, trial)
    return scheduler


def _play(scheduler: AsyncHyperBandScheduler, trial: Trial) -> None:
    """Let a scheduler see a trial that has ended, as if it had run under it."""
    played: Any = SimpleNamespace(trial_id=trial.name)
    nobody: Any = None  # the controller, which these schedulers do not ask
    scheduler.on_trial_add(nobody, played)
    results = [{EPOCH: one.epoch, VALUE: one.value} for one in trial.rounds]
    if trial.end is not None and trial.end.status == "non_finite":
        results.append({EPOCH: trial.end.epoch + 1, VALUE: WORST})
    for result in results:
        scheduler.on_trial_result(nobody, played, result)
    scheduler.on_trial_complete(nobody, played, results[-1] if results else {})


class _Explorer:
    """Changes the numbers of a trial that another is about to go on from."""

    def __init__(self, space: Space, options: PbtOptions) -> None:
        self._space = space
        self._options = options
        self._calls = 0

    def __call__(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return Tune's config with each value drawn anew or multiplied by a factor."""
        self._calls += 1
        # The values as well, so that a sweep that goes on does not draw what it drew before.
        generator = numpy_generator(self._options.seed, "explore", self._calls, identity_of(config["values"]))
        values = dict(config["values"])
        for path, distribution in self._space.entries.items():
            if path not in values or not isinstance(distribution, Continuous):
                continue
            if generator.random() < self._options.resample:
                values[path] = distribution.at(float(generator.random()))
            else:
                values[path] = distribution.perturbed(values[path], self._options.factors[int(generator.integers(2))])
        return {**config, "values": values}
