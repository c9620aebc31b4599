"""Tree-structured Parzen estimators by Optuna, the optional extra; the only door to it.

Bergstra, Bardenet, Bengio, Kegl: Algorithms for Hyper-Parameter Optimization, NeurIPS 2011; Watanabe: Tree-Structured
Parzen Estimator, 2023, for what Optuna does. Optuna's study is not kept: for every proposal one is made in memory from
what was told, with a sampler whose seed is named by the sweep's seed and the trial's number. So the same history gives
the same proposal, and there is no state to lose.

How trials are told to Optuna:

* finished: complete, with their value;
* stopped early: pruned, with their value at their last epoch. Optuna ranks pruned trials after all complete ones, later
  epochs first, equal epochs by value. That is the order in which a scheduler thinks of them, and it never compares the
  value of an early epoch with that of a late one;
* not finite, or failed: pruned at epoch 0 with value 0, so that they rank after every trial with a score. As complete
  ones they would rank before all that were stopped;
* not ended: running, which Optuna counts among the bad ones (constant liar), lest two workers be sent to one place.

Until `startup_trials` trials have ended the proposals are those of random search with the same seed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveInt

from sfora_ray.errors import ConfigError
from sfora_ray.randomness import derive_seed
from sfora_ray.search.base import SearcherOptions, Told, tried_before
from sfora_ray.search.distributions import Choice, Continuous, Distribution, Integer, LogUniform, OneMinusLogUniform
from sfora_ray.search.identity import identity_of
from sfora_ray.search.random_search import RandomSearcher
from sfora_ray.search.space import Space

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

_TRIES = 10
"""Proposals that repeat a configuration before a random draw takes their place."""


@dataclass(frozen=True)
class TpeSearcher:
    """Proposes what is likely to be among the best, given what was told."""

    space: Space
    seed: int
    startup_trials: int

    def propose(self, number: int, told: Sequence[Told]) -> dict[str, Any] | None:
        """Return a new configuration; none if every one has been tried."""
        others = sorted((one for one in told if one.number != number), key=lambda one: one.number)
        if sum(one.value is not None for one in others) >= self.startup_trials:
            tried = tried_before(number, others)
            for again in range(_TRIES):
                values = self._ask(number, again, others)
                if identity_of(values) not in tried:
                    return values
        return RandomSearcher(self.space, self.seed).propose(number, others)

    def _ask(self, number: int, again: int, told: Sequence[Told]) -> dict[str, Any]:
        trial = self._study(number, again, told).ask()
        return self.space.decide(lambda path, one: _suggested(trial, path, one))

    def _study(self, number: int, again: int, told: Sequence[Told]) -> optuna.Study:
        """Return a study of what was told, whose next proposal is that of trial ``number``."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(
            seed=derive_seed(self.seed, "search", number, "tpe", again) % 2**32,
            n_startup_trials=0,
            multivariate=True,
            constant_liar=True,
        )
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials([_frozen(self.space, one) for one in told])
        return study


def _frozen(space: Space, told: Told) -> optuna.trial.FrozenTrial:
    import optuna

    state = optuna.trial.TrialState
    distributions = {path: _to_optuna(space.entries[path]) for path in told.values}
    params = {path: _inner(space.entries[path], value) for path, value in told.values.items()}
    if told.value is None:
        return optuna.trial.create_trial(state=state.RUNNING, params=params, distributions=distributions)
    if told.status == "stopped":
        steps = {told.epoch: told.value}
        return optuna.trial.create_trial(
            state=state.PRUNED, params=params, distributions=distributions, intermediate_values=steps
        )
    if told.status == "finished":
        return optuna.trial.create_trial(value=told.value, params=params, distributions=distributions)
    return optuna.trial.create_trial(
        state=state.PRUNED, params=params, distributions=distributions, intermediate_values={0: 0.0}
    )


def _to_optuna(one: Distribution) -> BaseDistribution:
    """Return the distribution in Optuna's terms; choices are numbered, and ``1 - x`` stands for ``x``."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(one, Choice):
        return CategoricalDistribution(range(len(one.values)))
    if isinstance(one, Integer):
        return IntDistribution(one.low, one.last, log=one.log, step=one.step)
    if isinstance(one, OneMinusLogUniform):
        return FloatDistribution(1 - one.high, 1 - one.low, log=True)
    assert isinstance(one, Continuous)
    return FloatDistribution(one.low, one.high, log=isinstance(one, LogUniform))


def _inner(one: Distribution, value: Any) -> Any:
    """Return a value of ours as Optuna knows it."""
    if isinstance(one, Choice):
        return [identity_of(choice) for choice in one.values].index(identity_of(value))
    if isinstance(one, OneMinusLogUniform):
        return min(max(1 - value, 1 - one.high), 1 - one.low)
    return value


def _suggested(trial: optuna.Trial, path: str, one: Distribution) -> Any:
    """Return Optuna's suggestion as a value of ours."""
    from optuna.distributions import FloatDistribution, IntDistribution

    if isinstance(one, Choice):
        return one.values[trial.suggest_categorical(path, range(len(one.values)))]
    inner = _to_optuna(one)
    if isinstance(inner, IntDistribution):
        return trial.suggest_int(path, inner.low, inner.high, step=inner.step, log=inner.log)
    assert isinstance(inner, FloatDistribution)
    assert isinstance(one, Continuous)
    found = trial.suggest_float(path, inner.low, inner.high, log=inner.log)
    return one.nearest(1 - found if isinstance(one, OneMinusLogUniform) else found)


class OptunaOptions(SearcherOptions):
    """Tree-structured Parzen estimators, by the optional extra `sfora-ray[optuna]`."""

    name: Literal["optuna"] = "optuna"
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Names the draws."""
    startup_trials: PositiveInt = 10
    """Trials are drawn at random until so many have ended."""

    def build(self, space: Space) -> TpeSearcher:
        """Make the searcher.

        Raises:
            ConfigError: Optuna is not installed.
        """
        if importlib.util.find_spec("optuna") is None:
            raise ConfigError(
                "searcher.name: 'optuna' needs the package optuna. Install it with: pip install \"sfora-ray[optuna]\""
            )
        return TpeSearcher(space, self.seed, self.startup_trials)

    def size(self, space: Space) -> int | None:
        """Return the number of configurations of a space without continuous entries."""
        return space.size()
