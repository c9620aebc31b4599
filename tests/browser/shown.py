"""What the pages show: two small packs, one of them grown, and a sweep, told to a server by the product itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from mlflow import MlflowClient
from mlflow.entities import Run

from sfora_ray.comparison import Comparison
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.pack.run_folder import RunFolder, with_extent
from sfora_ray.sweep.best import write_results
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.mirror import SweepMirror
from sfora_ray.sweep.records import Round, TrialEnd
from sfora_ray.training.boundary import member_result
from sfora_ray.training.worker import Worker
from sfora_ray.workflows.compare import compare_folders
from sfora_ray.workflows.refold import refold
from tests.tiny import tiny_config
from tests.tiny_runs import train_here

EPOCHS = 4
SEARCHED = {
    "recipe.weight": {"distribution": "log_uniform", "low": 0.1, "high": 10.0},
    "recipe.tau": {"distribution": "log_uniform", "low": 0.02, "high": 0.5},
    "recipe.momentum": {"distribution": "one_minus_log_uniform", "low": 0.9, "high": 0.9999},
}
TRIALS = 9
STOPPED, NON_FINITE = 4, 7
"""Trials that did not come to their last epoch."""


@dataclass(frozen=True)
class Shown:
    """A server, and the folders that it was told of."""

    uri: str
    experiment: str
    pack: RunFolder
    other: RunFolder
    sweep: SweepFolder
    comparison: Comparison
    runs: Mapping[str, Run]
    """By our key without the digest, such as ``grown/m00``, ``search/t003`` or ``compare/``."""

    def name(self, key: str) -> str:
        """Return what people see of a run."""
        return str(self.runs[key].info.run_name)

    def id(self, key: str) -> str:
        """Return MLflow's id of a run."""
        return str(self.runs[key].info.run_id)

    def children(self, parent: str, kind: str = "") -> dict[str, Run]:
        """Return the runs below a parent, by key: all of them, or those of one kind."""
        above = self.id(parent)
        return {
            key: run
            for key, run in self.runs.items()
            if run.data.tags.get("mlflow.parentRunId") == above and run.data.tags["sfora.kind"].startswith(kind)
        }

    def page(self, key: str, tab: str = "") -> str:
        """Return the route of a run's page."""
        return f"/experiments/{self.experiment}/runs/{self.id(key)}{tab}"


def pack_of(images: Path, place: Path, name: str, uri: str, *overrides: str) -> RunFolder:
    """Train a pack of two members in this process; nothing is folded or told."""
    tracking = f"tracking={{name: mlflow, uri: '{uri}'}}"
    length = f"training.epochs={EPOCHS}"
    return train_here(tiny_config(images, place, f"name={name}", length, "selection.split=last", tracking, *overrides))


def grow(run: RunFolder, seed: int) -> None:
    """Give a pack a member more."""
    config = run.manifest().config
    run.extend(with_extent(config, (*config.seeds, seed), config.training.epochs))
    spec = run.specs()[-1]
    member_result(spec, run.member(spec).path, Worker.alone(torch.device("cpu")))


def fold_and_tell(run: RunFolder) -> None:
    """Fold a trained pack, write its report and tell the tracker of all of it."""
    refold(run, (), say=lambda _: None)


def sweep_of(pack: PackConfig) -> SweepFolder:
    """Write the folder of a sweep that nobody trained: the better, the nearer its weight is to 1."""
    values = {
        "name": "search",
        "pack": pack.plain(),
        "space": SEARCHED,
        "trials": TRIALS,
        "scheduler": {"name": "asha", "grace_epochs": 2},
    }
    sweep = SweepFolder.create(SweepConfig.model_validate(values), "none", "0123456789abcdef")
    searcher = sweep.config().searcher.build(sweep.config().search_space)
    for number in range(TRIALS):
        proposed = searcher.propose(number, ())
        assert proposed is not None
        _play(sweep, number, proposed)
    write_results(sweep)
    return sweep


def _play(sweep: SweepFolder, number: int, values: dict[str, Any]) -> None:
    trial = sweep.begin_trial(number, values)
    last = 2 if number in (STOPPED, NON_FINITE) else EPOCHS
    for epoch in range(1, last + 1):
        score = round((0.6 - 0.05 * abs(values["recipe.weight"] - 1.0)) * (1.0 - 0.5**epoch), 4)
        scores = {"map_at_r": score / 2, "recall_at_1": score}
        trial.append_round(Round(epoch=epoch, value=score, members={"seed0-fold0": scores}, time_ms=_time(epoch)))
    best = max(one.value for one in trial.rounds())
    if number == NON_FINITE:
        reason = "the loss was nan in epoch 3"
        end = TrialEnd(status="non_finite", reason=reason, epoch=last, value=0.0, time_ms=_time(last))
    elif number == STOPPED:
        reason = "asha stopped it after epoch 2"
        end = TrialEnd(status="stopped", reason=reason, epoch=last, value=best, time_ms=_time(last))
    else:
        end = TrialEnd(status="finished", epoch=last, value=best, time_ms=_time(last))
    trial.write_end(end)


def _time(epoch: int) -> int:
    return 1_790_000_000_000 + 60_000 * epoch


def tell_sweep(sweep: SweepFolder) -> None:
    """Tell the tracker all of a sweep."""
    mirror = SweepMirror(sweep, sweep.config().pack.tracking.build())
    mirror.check()
    mirror.open()
    mirror.follow()
    mirror.tell_ranking()
    mirror.close("FINISHED")


def compare_and_tell(runs: list[RunFolder], place: Path) -> Comparison:
    """Compare packs, write the report and tell the tracker of the first."""
    tracker = runs[0].manifest().config.tracking.build()
    outcome = compare_folders(runs, None, place, tracker, say=lambda _: None)
    assert outcome.told
    return outcome.comparison


def runs_of(uri: str) -> tuple[str, dict[str, Run]]:
    """Return the experiment's id and its runs by name of folder and part."""
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("sfora")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    return experiment.experiment_id, {_key(run.data.tags["sfora.key"]): run for run in runs}


def _key(key: str) -> str:
    folder, _, part = key.partition("/")
    return f"{folder.rpartition('-')[0]}/{part}"


def quoted(ids: list[str]) -> str:
    """Return run ids as MLflow's addresses hold them."""
    return json.dumps(ids, separators=(",", ":"))
