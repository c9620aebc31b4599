"""A sweep from its configuration to its report, with trials in this process."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

import sfora_ray.workflows.confirm
import sfora_ray.workflows.sweep
from sfora_ray.config.load import load_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import BusyError, ConfigError, RunFolderError, SforaError, TrackerError
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import Summary
from sfora_ray.sweep.confirmation import Confirmed
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.records import TrialEnd
from sfora_ray.sweep.status import SweepView
from sfora_ray.workflows.confirm import confirm_sweep
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.reconcile import reconcile_sweep
from sfora_ray.workflows.refold import refold
from sfora_ray.workflows.sweep import resume_sweep, run_or_resume_sweep, run_sweep
from sfora_ray.workflows.sync import sync_sweep
from tests.sweep.paper import TrialsHere, paper_sweep, sweep_config
from tests.tiny_runs import PANDAS_OF_MLFLOW, train_here

pytestmark = [
    pytest.mark.usefixtures("mlflow_store"),
    pytest.mark.filterwarnings(f"ignore:{PANDAS_OF_MLFLOW}"),
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
]
SMALL = ("trials=3", "seeds=[5]", "pack.training={epochs: 2, evaluate_every: 1}")


def silent(_: object) -> None:
    """Watch and hear nothing."""


class Swept:
    """A sweep that was interrupted after one trial and then resumed."""

    def __init__(self, images: Path, place: Path) -> None:
        self.uri = f"sqlite:///{place}/mlflow.db"
        tracking = f"pack.tracking={{name: mlflow, uri: '{self.uri}', experiment: search}}"
        config = sweep_config(images, place, *SMALL, tracking)
        self.seen: list[SweepView] = []
        self.said: list[str] = []
        self.first, self.second = TrialsHere(most=1), TrialsHere()
        with pytest.raises(KeyboardInterrupt):
            run_sweep(config, watch=silent, say=silent, trials=self.first)
        self.after_interrupt = states(self.uri)
        self.sweep, self.found = resume_sweep(
            config.folder, watch=self.seen.append, say=self.said.append, trials=self.second
        )


def states(uri: str) -> dict[str, str]:
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("search")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    return {run.data.tags["sfora.key"].split("/")[1]: run.info.status for run in runs}


@pytest.fixture(scope="module")
def swept(images: Path, tmp_path_factory: pytest.TempPathFactory, mlflow_store: None) -> Iterator[Swept]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The ``noload`` loader strategy is deprecated")
        yield Swept(images, tmp_path_factory.mktemp("swept"))


def test_no_trial_is_lost_or_run_twice(swept: Swept) -> None:
    assert (swept.first.ran, swept.second.ran) == ([0], [1, 2])
    assert [trial.status for trial in swept.found.trials] == ["finished"] * 3
    assert len({str(trial.values) for trial in swept.found.trials}) == 3


def test_how_many_run_at_once_is_said(swept: Swept) -> None:
    assert swept.said[0] == "3 of 3 trials run at once"
    assert swept.seen[-1].state == "running"
    assert len(swept.seen[-1].ended) == 3


def test_ranking_best_and_report_lie_in_the_folder(swept: Swept) -> None:
    best = swept.found.best()
    assert best is not None
    values = load_config(swept.sweep.best_path).plain()
    assert values["recipe"]["weight"] == best.values["recipe.weight"]
    assert (swept.sweep.report_path / "index.html").stat().st_size > 1000
    assert (swept.sweep.report_path / "figures" / "sweep_parallel.svg").is_file()
    assert not swept.sweep.is_written()


def test_the_tracker_has_one_parent_and_every_trial_once(swept: Swept) -> None:
    assert swept.after_interrupt == {"sweep": "KILLED", "t000": "FINISHED"}
    assert states(swept.uri) == dict.fromkeys(("sweep", "t000", "t001", "t002"), "FINISHED")


def test_a_finished_sweep_runs_nothing_again(swept: Swept) -> None:
    again = TrialsHere(most=0)
    assert resume_sweep(swept.sweep.path, watch=silent, say=silent, trials=again)[1] == swept.found
    assert run_or_resume_sweep(swept.sweep.config(), watch=silent, say=silent, trials=again)[1] == swept.found
    assert again.ran == []
    assert states(swept.uri) == dict.fromkeys(("sweep", "t000", "t001", "t002"), "FINISHED")


def test_the_same_sweep_again_is_refused(swept: Swept) -> None:
    with pytest.raises(RunFolderError, match=f"sfora-ray sweep resume {swept.sweep.path}"):
        run_sweep(swept.sweep.config(), watch=silent, say=silent, trials=TrialsHere())


def test_sync_and_reconcile_know_sweeps(swept: Swept, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path}/other.db"
    assert sync_sweep(swept.sweep, uri=other)
    assert states(other) == dict.fromkeys(("sweep", "t000", "t001", "t002"), "FINISHED")
    assert reconcile_sweep(swept.sweep, uri=other, experiment=None) == []
    with run_lock(swept.sweep.path):
        assert not sync_sweep(swept.sweep, uri=other)
        with pytest.raises(BusyError, match="its sweep is alive"):
            reconcile_sweep(swept.sweep, uri=other, experiment=None)
    assert states(other)["sweep"] == "RUNNING"
    assert [one.name for one in reconcile_sweep(swept.sweep, uri=other, experiment="search")] == ["search"]


def test_more_trials_extend_a_sweep(images: Path, tmp_path: Path) -> None:
    config = sweep_config(images, tmp_path, *SMALL, "trials=1")
    sweep, _ = run_sweep(config, watch=silent, say=silent, trials=TrialsHere())
    more = TrialsHere()
    with pytest.raises(ConfigError, match=r"has begun 1 trials, got 0. Give 1 or more"):
        resume_sweep(sweep.path, num_trials=0, watch=silent, say=silent, trials=more)
    _, found = resume_sweep(sweep.path, num_trials=2, watch=silent, say=silent, trials=more)
    assert (more.ran, len(found.trials), sweep.config().trials) == ([1], 2, 2)


def test_a_failure_is_no_interruption(images: Path, tmp_path: Path) -> None:
    trials = TrialsHere(most=0, error=SforaError("Ray Tune gave up"))
    with pytest.raises(SforaError, match="Ray Tune gave up"):
        run_sweep(sweep_config(images, tmp_path, *SMALL), watch=silent, say=silent, trials=trials)


def test_nothing_that_came_to_anything_is_an_error_with_reasons(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(sweep: SweepFolder, number: int, values: object, report: object) -> None:
        end = TrialEnd(status="non_finite", reason="the loss is nan.", epoch=0, value=0.0, time_ms=1)
        sweep.trial(number).write_end(end)

    monkeypatch.setattr("tests.sweep.paper.run_trial", fail)
    config = sweep_config(images, tmp_path, *SMALL, "trials=1")
    with pytest.raises(SforaError, match="no trial came to anything: t000 non_finite: the loss is nan"):
        run_sweep(config, watch=silent, say=silent, trials=TrialsHere())
    assert not SweepFolder.of(config).best_path.exists()
    assert "No trial has come to anything" in (SweepFolder.of(config).report_path / "report.md").read_text()


def test_two_at_once_are_told_apart(images: Path, tmp_path: Path) -> None:
    sweep = paper_sweep(images, tmp_path)
    with run_lock(sweep.path), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sfora_ray.workflows.sweep, "run_lock", lambda path: run_lock(path, patience_seconds=0))
        with pytest.raises(BusyError, match="is being written by process"):
            resume_sweep(sweep.path, watch=silent, say=silent, trials=TrialsHere())
        with pytest.raises(BusyError, match="the sweep is under way"):
            confirm_sweep(sweep.path, Launcher(local=True), top=1, num_seeds=2, watch=silent, say=silent)


def test_a_new_sweep_wants_its_tracker_and_the_old_data(images: Path, tmp_path: Path) -> None:
    away = sweep_config(images, tmp_path, *SMALL, "pack.tracking={name: mlflow, uri: 'http://127.0.0.1:9'}")
    with pytest.raises(TrackerError):
        run_sweep(away, watch=silent, say=silent, trials=TrialsHere())
    assert not away.folder.exists()
    sweep = paper_sweep(images, tmp_path)
    with pytest.raises(RunFolderError, match="its trials saw data with digest abc"):
        resume_sweep(sweep.path, watch=silent, say=silent, trials=TrialsHere())


def pack_made_here(config: PackConfig, launcher: Launcher, *, watch: object, say: object) -> tuple[RunFolder, Summary]:
    """Train and fold a pack without processes of its own, which would take most of the time."""
    del launcher, watch, say
    run = train_here(config)
    return run, refold(run, (), say=silent)


def test_confirm_trains_packs_with_fresh_seeds_and_compares_them(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sfora_ray.workflows.confirm, "run_or_resume", pack_made_here)
    sweep = paper_sweep(images, tmp_path, *SMALL[1:], "pack.folds=[]", "pack.selection={split: validation}")
    said: list[str] = []

    def confirm(top: int = 1) -> Confirmed:
        local = Launcher(local=True)
        return confirm_sweep(sweep.path, local, top=top, num_seeds=2, watch=silent, say=said.append)[1]

    result = confirm()
    assert said[0].startswith("note: the sweep is not complete; this is the best so far")
    packs = sorted(path.name.rsplit("-", 1)[0] for path in sweep.confirm_path.glob("search-*"))
    assert packs == ["search-default", "search-t003"]
    default, best = result.verdicts
    assert (best.label, best.promised, default.promised) == ("t003", 0.65, None)
    assert best.difference == pytest.approx(best.mean - default.mean)
    assert best.remeasured is not None
    assert best.says
    assert Path(result.report).is_file()
    said.clear()
    assert confirm() == result
    assert not any(line.startswith("pack ") for line in said)
    with pytest.raises(RunFolderError, match=r"best 1 with 2 seeds was begun, got --top 2 --seeds 2"):
        confirm(top=2)
