"""What Ray Tune asks of a searcher, answered from the sweep folder.

Tune would keep a searcher's state in a pickle; ours has none: what is tried next is a function of the trials in the
folder. A trial that has begun and not ended is handed out again first, so that a killed sweep loses none and repeats
none.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ray.tune.search import Searcher as TuneSearcher

from sfora_ray.search.base import Searcher
from sfora_ray.sweep.folder import SweepFolder, TrialFolder
from sfora_ray.sweep.told import told

NUMBER, VALUES = "trial", "values"
"""Keys in what Tune calls a trial's config."""


def tune_config(trial: TrialFolder) -> dict[str, Any]:
    """Return what Tune is to hand to a trial: its number, and what it tries or, if that was changed, now tries."""
    rounds, record = trial.rounds(), trial.record()
    return {NUMBER: record.number, VALUES: (rounds[-1].values if rounds else {}) or record.values}


class Proposals(TuneSearcher):
    """Hands out trials: those under way, then new ones, until there are as many as planned or the space is used up.

    Args:
        sweep: where trials are recorded before they are handed out.
        searcher: what proposes new ones.
        planned: trials in all; None for as many as the searcher has.
    """

    def __init__(self, sweep: SweepFolder, searcher: Searcher, planned: int | None) -> None:
        super().__init__()
        self._sweep = sweep
        self._searcher = searcher
        self._planned = planned
        self._begun = deque(trial.number for trial in sweep.trials() if trial.end is None)
        self._next = max(sweep.numbers(), default=-1) + 1

    def suggest(self, trial_id: str) -> dict[str, Any] | str:  # type: ignore[override]  # Tune types FINISHED away
        """Return the next trial's number, or that there is none any more."""
        del trial_id
        if self._begun:
            return tune_config(self._sweep.trial(self._begun.popleft()))
        if self._planned is not None and self._next >= self._planned:
            return TuneSearcher.FINISHED
        values = self._searcher.propose(self._next, told(self._sweep))
        if values is None:
            return TuneSearcher.FINISHED
        number, self._next = self._next, self._next + 1
        return tune_config(self._sweep.begin_trial(number, values))

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Do nothing: what became of it is in the folder."""

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: there is no state."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing: there is no state."""
