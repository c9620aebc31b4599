"""A pack from its configuration to its report, with members in processes of this machine."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from mlflow import MlflowClient

from sfora_ray.errors import ConfigError
from sfora_ray.folds import FittedFold
from sfora_ray.pack.local import blocks_from_folder, train_moments
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.refold import refold
from sfora_ray.workflows.run_pack import resume_pack, run_or_resume
from sfora_ray.workflows.sync import sync_run
from tests.tiny import tiny_config
from tests.tiny_runs import PANDAS_OF_MLFLOW, Tracked, train_here

pytestmark = pytest.mark.filterwarnings(f"ignore:{PANDAS_OF_MLFLOW}")


def silent(_: object) -> None:
    """Watch and hear nothing."""


def everything_told(uri: str) -> Mapping[str, object]:
    """Return all that MLflow holds of the pack ``tiny``: status, parameters, every point, files and models."""
    client = MlflowClient(tracking_uri=uri)
    (experiment,) = client.search_experiments(filter_string="name = 'sfora'")
    told: dict[str, object] = {
        "models": sorted(model.model_id for model in client.search_logged_models([experiment.experiment_id]))
    }
    for run in client.search_runs([experiment.experiment_id]):
        if not run.data.tags.get("sfora.pack", "").startswith("tiny-"):
            continue
        points = {
            key: [
                (point.step, point.timestamp, point.value) for point in client.get_metric_history(run.info.run_id, key)
            ]
            for key in run.data.metrics
        }
        files = sorted(file.path for file in client.list_artifacts(run.info.run_id))
        told[run.info.run_id] = (run.info.status, run.data.params, points, files)
    return told


def test_the_run_folder_holds_the_whole_story(tracked: Tracked) -> None:
    run = tracked.run
    assert run.path.name == run.manifest().config.run_name
    assert [result.status for result in run.results().values()] == ["finished", "finished"]
    assert run.summary() == tracked.summary
    assert [fold.name for fold in tracked.summary.folds[:4]] == ["concat", "mean", "gpa", "wccn"]
    assert tracked.summary.folds[0].retained == 1.0
    assert [point.size for point in tracked.summary.pack_curve] == [1, 2]
    assert (run.report_path / "index.html").stat().st_size > 1000
    assert (run.report_path / "report.md").is_file()


def test_members_are_watched_until_they_finish(tracked: Tracked) -> None:
    assert [view.state for view in tracked.seen[-1]] == ["finished", "finished"]
    assert tracked.said[0] == "checking tracker, data and weights"
    assert f"run folder {tracked.run.path}" in tracked.said


def test_mlflow_has_a_parent_and_a_child_for_each_member_and_fold(tracked: Tracked) -> None:
    client = MlflowClient(tracking_uri=tracked.uri)
    (experiment,) = client.search_experiments(filter_string="name = 'sfora'")
    found = client.search_runs([experiment.experiment_id])
    runs = [run for run in found if run.data.tags.get("sfora.pack", "").startswith("tiny-")]
    kinds = [run.data.tags["sfora.kind"] for run in runs]
    assert (kinds.count("pack"), kinds.count("member")) == (1, 2)
    assert kinds.count("fold") == len(tracked.summary.folds)
    assert {run.info.status for run in runs} == {"FINISHED"}
    (parent,) = [run for run in runs if run.data.tags["sfora.kind"] == "pack"]
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(children) == len(runs) - 1
    gpa = next(fold for fold in tracked.summary.folds if fold.name == "gpa")
    assert parent.data.metrics["fold.gpa.recall_at_1"] == pytest.approx(gpa.metrics["recall_at_1"])


def test_members_in_processes_have_the_bits_of_members_in_this_one(
    tracked: Tracked, images: Path, tmp_path: Path
) -> None:
    here = train_here(tiny_config(images, tmp_path))
    for spec in here.specs():
        for name in ("embeddings.train.npz", "embeddings.test.npz", "model.safetensors"):
            there = tracked.run.member(spec).path / name
            assert there.read_bytes() == (here.member(spec).path / name).read_bytes(), (spec.id, name)


def test_telling_again_adds_nothing(tracked: Tracked) -> None:
    before = everything_told(tracked.uri)
    assert len(before) > 3
    sync_run(tracked.run, uri=None)
    assert everything_told(tracked.uri) == before


def test_resuming_a_finished_pack_trains_nothing(tracked: Tracked) -> None:
    files = [path for path in (tracked.run.path / "members").rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    models = everything_told(tracked.uri)["models"]
    run, summary = resume_pack(tracked.run.path, Launcher(local=True), watch=silent, say=silent)
    assert run.path == tracked.run.path
    assert summary == tracked.summary
    assert everything_told(tracked.uri)["models"] == models
    after = {path: path.stat().st_mtime_ns for path in (run.path / "members").rglob("*") if path.is_file()}
    assert after == before


def test_a_job_submitted_again_goes_on_with_its_folder(tracked: Tracked) -> None:
    result = tracked.run.member(tracked.run.specs()[0]).result_path
    before = result.stat().st_mtime_ns
    run, summary = run_or_resume(tracked.run.manifest().config, Launcher(local=True), watch=silent, say=silent)
    assert (run, summary, result.stat().st_mtime_ns) == (tracked.run, tracked.summary, before)


@pytest.fixture
def untold(tracked: Tracked, tmp_path: Path) -> RunFolder:
    """A copy of the pack's run folder that tells no tracker."""
    path = Path(shutil.copytree(tracked.run.path, tmp_path / tracked.run.path.name))
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["config"]["tracking"] = {"name": "none"}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return RunFolder.open(path)


def test_refolding_fits_saves_and_scores_the_folds_asked_for(untold: RunFolder) -> None:
    summary = refold(untold, ("gpa", "uncentred:4"), say=silent)
    assert [(fold.name, fold.dim, fold.fitted_on) for fold in summary.folds] == [
        ("concat", 16, "none"),
        ("mean", 8, "none"),
        ("gpa", 8, "train"),
        ("wccn", 8, "train"),
        ("uncentred-4", 4, "train"),
        ("single:wccn", 8, "train"),
    ]
    assert untold.summary() == summary
    gram = train_moments(blocks_from_folder(untold, untold.specs())).gram
    basis, _ = np.linalg.qr(FittedFold.load(untold.fold_path("uncentred-4")).matrix.astype(float))
    assert np.trace(basis.T @ gram @ basis) == pytest.approx(np.linalg.eigvalsh(gram)[-4:].sum(), rel=1e-5)


def test_an_unknown_fold_changes_nothing(untold: RunFolder) -> None:
    before = {path: path.stat().st_mtime_ns for path in untold.path.rglob("*")}
    with pytest.raises(ConfigError, match="Did you mean 'gpa'"):
        refold(untold, ("mean", "gpu"), say=silent)
    assert {path: path.stat().st_mtime_ns for path in untold.path.rglob("*")} == before
