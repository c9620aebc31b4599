"""Trials on Ray Tune, on a cluster without a dashboard: what they leave in the sweep folder and on the cluster."""

import shutil
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.tune.schedulers import AsyncHyperBandScheduler

from sfora_ray.cluster.held import held_after_all
from sfora_ray.cluster.schedulers import build_scheduler
from sfora_ray.cluster.trial import EPOCH, VALUE
from sfora_ray.cluster.tuning import refuse_nesting_without_state_api, run_trials, trials_that_fit
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.errors import ResourceError, SforaError
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.training.preflight import preflight
from tests.tiny import tiny_values

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

EPOCHS = 4


def sweep_values(images: Path, place: Path, **changed: Any) -> dict[str, Any]:
    pack = tiny_values(images, place)
    pack["training"] = {"epochs": EPOCHS, "evaluate_every": 1}
    pack["resources"] = {"gpus_per_worker": 1}
    values = {
        "name": "tiny-sweep",
        "pack": pack,
        "space": {"recipe.tau": {"distribution": "log_uniform", "low": 0.02, "high": 0.5}},
        "trials": 5,
    }
    return {**values, **changed}


def new_sweep(values: dict[str, Any]) -> SweepFolder:
    config = SweepConfig.model_validate(values)
    plan = preflight(config.pack)
    return SweepFolder.create(config, plan.weights, plan.dataset_digest)


def run(sweep: SweepFolder) -> int:
    looks = 0

    def watch() -> None:
        nonlocal looks
        looks += 1

    run_trials(sweep, watch)
    return looks


@dataclass(frozen=True)
class Halved:
    """A sweep under successive halving, one rate of which cannot end well; what was held when it had ended."""

    sweep: SweepFolder
    looks: int
    held: list[str]


@pytest.fixture(scope="module")
def halved(cluster: None, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Halved:
    values = sweep_values(
        images,
        tmp_path_factory.mktemp("halved"),
        space={"optimizer.lr": {"distribution": "choice", "values": [1e-3, 1e30, 1e-4, 3e-4]}},
        trials=None,
        seeds=[0, 1],
        searcher={"name": "grid"},
        scheduler={"name": "asha", "grace_epochs": 1, "reduction": 2},
    )
    sweep = new_sweep(values)
    looks = run(sweep)
    return Halved(sweep, looks, held_after_all())


def test_every_configuration_is_tried_once_and_ends(halved: Halved) -> None:
    trials = halved.sweep.trials()
    assert [trial.values["optimizer.lr"] for trial in trials] == [1e-3, 1e30, 1e-4, 3e-4]
    ends = {trial.values["optimizer.lr"]: trial.end for trial in trials}
    for lr, end in ends.items():
        assert end is not None
        if lr == 1e30:
            assert (end.status, end.value) == ("non_finite", 0.0)
            assert "the loss is" in end.reason
        else:
            assert end.status == ("finished" if end.epoch == EPOCHS else "stopped")
    assert halved.looks > 3


def test_nothing_is_held_afterwards(halved: Halved) -> None:
    assert halved.held == []


def test_a_sweep_that_was_killed_goes_on_where_it_was(halved: Halved, tmp_path: Path) -> None:
    """Two trials had ended, one was in the middle, one had only been drawn."""
    copied = shutil.copytree(halved.sweep.path, tmp_path / halved.sweep.path.name)
    killed = SweepFolder(copied)
    finished = next(trial for trial in killed.trials() if trial.end is not None and trial.end.status == "finished")
    drawn = next(trial for trial in killed.trials() if trial.values["optimizer.lr"] == 1e30)
    finished.folder.end_path.unlink()
    lines = finished.folder.rounds_path.read_text().splitlines(keepends=True)
    finished.folder.rounds_path.write_text("".join(lines[:2]))
    drawn.folder.end_path.unlink()
    shutil.rmtree(drawn.folder.path / "members")
    before = {trial.name: trial.folder.end_path.read_bytes() for trial in killed.trials() if trial.end is not None}
    run(killed)
    again = killed.trials()
    assert [trial.values for trial in again] == [trial.values for trial in halved.sweep.trials()]
    assert {name: (killed.trials_path / name / "end.json").read_bytes() for name in before} == before
    ends = {trial.name: trial.end for trial in again}
    assert ends[drawn.name] is not None
    assert ends[drawn.name].status == "non_finite"  # type: ignore[union-attr]
    assert ends[finished.name] is not None
    standing = [(one.epoch, one.value) for one in next(t for t in again if t.name == finished.name).rounds]
    assert standing == [(one.epoch, one.value) for one in finished.rounds][: len(standing)]
    assert len(standing) >= 2


def test_a_new_scheduler_judges_as_one_that_has_seen_all(halved: Halved) -> None:
    """A trial worse than the median of the first rung is stopped there, a better one goes on."""
    trials = halved.sweep.trials()
    firsts = [trial.rounds[0].value if trial.rounds else 0.0 for trial in trials]
    for value, action in ((statistics.median(firsts) - 0.01, "STOP"), (max(firsts) + 0.01, "CONTINUE")):
        scheduler = build_scheduler(halved.sweep.config(), trials)
        assert isinstance(scheduler, AsyncHyperBandScheduler)

        class New:
            trial_id = "new"

        scheduler.on_trial_add(None, New())  # type: ignore[arg-type]
        assert scheduler.on_trial_result(None, New(), {EPOCH: 1, VALUE: value}) == action  # type: ignore[arg-type]


@pytest.mark.long
def test_a_population_goes_on_from_its_best(images: Path, tmp_path: Path) -> None:
    values = sweep_values(
        images,
        tmp_path,
        space={"optimizer.lr": {"distribution": "log_uniform", "low": 1e-7, "high": 1e-2}},
        trials=4,
        scheduler={"name": "pbt", "interval_epochs": 1},
    )
    values["pack"]["resources"] = {}  # all at once
    sweep = new_sweep(values)
    run(sweep)
    trials = sweep.trials()
    assert [trial.end.status for trial in trials if trial.end is not None] == ["finished"] * 4
    assert all([one.epoch for one in trial.rounds][-1] == EPOCHS for trial in trials)
    drawn = [trial.values["optimizer.lr"] for trial in trials]
    changed = [one.values["optimizer.lr"] for trial in trials for one in trial.rounds if one.values]
    assert changed
    assert all(1e-7 <= lr <= 1e-2 for lr in changed)
    assert set(changed) - set(drawn)
    assert held_after_all() == []


def test_as_many_trials_as_fit(images: Path, tmp_path: Path) -> None:
    values = sweep_values(images, tmp_path)
    assert trials_that_fit(SweepConfig.model_validate(values)) == 2
    assert trials_that_fit(SweepConfig.model_validate({**values, "max_concurrent_trials": 1})) == 1
    values["pack"]["resources"] = {"cpus_per_worker": 64}
    with pytest.raises(ResourceError, match="64 CPU"):
        trials_that_fit(SweepConfig.model_validate(values))


def test_members_of_several_workers_need_the_state_api(images: Path, tmp_path: Path) -> None:
    values = sweep_values(images, tmp_path)
    refuse_nesting_without_state_api(SweepConfig.model_validate(values))
    values["pack"]["resources"] = {"workers_per_member": 2}
    with pytest.raises(ResourceError, match=r"ray\[default\]"):
        refuse_nesting_without_state_api(SweepConfig.model_validate(values))


@ray.remote(num_cpus=0, num_gpus=2)
class Holder:
    """Holds every GPU until it is killed."""

    def holds(self) -> bool:
        return True


def test_waiting_for_room_ends_with_what_is_missing(images: Path, tmp_path: Path) -> None:
    values = sweep_values(images, tmp_path)
    values["pack"]["resources"] = {"gpus_per_worker": 1, "schedule_timeout_seconds": 1}
    sweep = new_sweep(values)
    holder = Holder.remote()  # type: ignore[attr-defined]
    assert ray.get(holder.holds.remote(), timeout=60)
    try:
        with pytest.raises(SforaError, match=r"waited 1 s .* 1 CPU, 1 GPU; free now: 5 CPU, 0 GPU") as caught:
            run(sweep)
    finally:
        ray.kill(holder)
    assert f"sweep resume {sweep.path}" in str(caught.value)
    assert held_after_all() == []
