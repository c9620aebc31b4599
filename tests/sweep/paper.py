"""Sweeps on paper: folders as trials would have left them, and a place that runs trials in this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfora_ray.config.overrides import apply_overrides
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.sweep.folder import SweepFolder, TrialFolder
from sfora_ray.sweep.records import Round, TrialEnd
from sfora_ray.sweep.told import told
from sfora_ray.sweep.trial import run_trial
from tests.tiny import tiny_values

WEIGHT, DIM, LR = "recipe.weight", "model.dim", "optimizer.lr"
SPACE: dict[str, Any] = {
    WEIGHT: {"distribution": "log_uniform", "low": 0.1, "high": 10},
    DIM: {"distribution": "choice", "values": [8, 16]},
    LR: {"distribution": "uniform", "low": 1e-4, "high": 1e-2, "when": {DIM: [16]}},
}
VALUES: tuple[dict[str, Any], ...] = (
    {WEIGHT: 1.5, DIM: 8},
    {WEIGHT: 0.5, DIM: 8},
    {WEIGHT: 9.0, DIM: 8},
    {WEIGHT: 0.2, DIM: 16, LR: 0.001},
    {WEIGHT: 3.0, DIM: 8},
    {WEIGHT: 4.0, DIM: 16, LR: 0.005},
)
MEANS: tuple[tuple[float, ...], ...] = ((0.5, 0.6), (0.7,), (), (0.65, 0.62), (0.3,), (0.9,))
"""Of each trial, after the second epoch, the fourth, and so on."""


def sweep_values(images: Path, folder: Path) -> dict[str, Any]:
    pack = tiny_values(images, folder)
    pack["training"] = {"epochs": 4, "evaluate_every": 2}
    return {"name": "search", "pack": pack, "space": SPACE, "trials": 6, "seeds": [5, 0]}


def sweep_config(images: Path, folder: Path, *overrides: str) -> SweepConfig:
    return SweepConfig.model_validate(apply_overrides(sweep_values(images, folder), overrides))


def round_of(epoch: int, mean: float) -> Round:
    """Return a round of two members, .02 apart."""
    members = {
        name: {"recall_at_1": mean + shift, "map_at_r": mean / 2}
        for name, shift in (("seed5-fold0", -0.01), ("seed0-fold0", 0.01))
    }
    return Round(epoch=epoch, value=mean, members=members, time_ms=1000 * epoch)


def paper_sweep(images: Path, folder: Path, *overrides: str) -> SweepFolder:
    """Make a sweep of six: two finished, one each stopped, not finite, failed and under way."""
    sweep = SweepFolder.create(sweep_config(images, folder, *overrides), weights="none", dataset_digest="abc")
    for number, values in enumerate(VALUES):
        trial = sweep.begin_trial(number, values)
        for place, mean in enumerate(MEANS[number], start=1):
            trial.append_round(round_of(2 * place, mean))
    ends = {
        0: TrialEnd(status="finished", epoch=4, value=0.6, time_ms=9000),
        1: TrialEnd(status="stopped", reason="by asha after epoch 2, at 0.7000", epoch=2, value=0.7, time_ms=9001),
        2: TrialEnd(status="non_finite", reason="epoch 1, step 3: the loss is nan.", epoch=0, value=0.0, time_ms=9002),
        3: TrialEnd(status="finished", epoch=4, value=0.65, time_ms=9003),
        4: TrialEnd(status="failed", reason="no memory", epoch=2, value=None, time_ms=9004),
    }
    for number, end in ends.items():
        sweep.trial(number).write_end(end)
    return sweep


def end_the_last(sweep: SweepFolder) -> TrialFolder:
    """End the trial that was under way."""
    trial = sweep.trial(5)
    trial.append_round(round_of(4, 0.4))
    trial.write_end(TrialEnd(status="finished", epoch=4, value=0.9, time_ms=9005))
    return trial


class TrialsHere:
    """Runs trials in this process, one after the other, ``most`` of them at most.

    Attributes:
        ran: the trials that were run, in order.
    """

    def __init__(self, most: int = 1000, error: BaseException | None = None) -> None:
        self._most = most
        self._error = error
        self.ran: list[int] = []

    @contextmanager
    def ready(self, config: SweepConfig) -> Iterator[None]:  # noqa: ARG002
        yield

    def refuse_impossible(self, config: SweepConfig, folder: Path) -> None:
        assert folder == config.folder.parent

    def at_once(self, config: SweepConfig) -> int:
        return config.max_concurrent_trials or 64

    def run(self, sweep: SweepFolder, watch: Callable[[], None]) -> None:
        config = sweep.config()
        searcher = config.searcher.build(config.search_space)
        for number in range(config.num_trials or 0):
            if sweep.trial(number).end() is not None:
                continue
            if len(self.ran) >= self._most:
                raise self._error or KeyboardInterrupt
            values = searcher.propose(number, told(sweep))
            assert values is not None
            sweep.begin_trial(number, values)
            self.ran.append(number)
            watch()
            run_trial(sweep, number, values, lambda _: watch())
