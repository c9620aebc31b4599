"""A run folder told to another server, told while it is written, and told after it grew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient

from sfora_ray.config.member import MemberResult
from sfora_ray.errors import BusyError, DataError
from sfora_ray.pack.ending import pack_status, summary_fits
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import CurvePoint, FoldFacts, MemberFacts, PackFacts, Spread, Summary
from sfora_ray.tracking import MlflowOptions
from sfora_ray.training.boundary import failed
from sfora_ray.workflows.reconcile import reconcile_run, reconcile_server
from sfora_ray.workflows.sync import sync_run, tracking_at
from tests.tiny_runs import PANDAS_OF_MLFLOW, Tracked
from tests.tracking.packs import epoch, expected, finish, history, paper_pack, shown

pytestmark = [
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
    pytest.mark.filterwarnings(f"ignore:{PANDAS_OF_MLFLOW}"),
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('sync')}/mlflow.db"


def test_another_server_hears_the_whole_pack_from_the_folder_alone(tracked: Tracked, uri: str) -> None:
    assert sync_run(tracked.run, uri=uri)
    there, here = shown(uri, "sfora"), shown(tracked.uri, "sfora")
    own = {
        part: [run for run in runs if run.data.tags.get("sfora.pack", "") == tracked.run.path.name]
        for part, runs in here.items()
    }
    assert set(there) == {part for part, runs in own.items() if runs}
    for part, (run,) in there.items():
        (twin,) = own[part]
        assert (run.data.metrics, run.data.params, run.info.status) == (twin.data.metrics, twin.data.params, "FINISHED")
    models = MlflowClient(uri).search_logged_models([there["pack"][0].info.experiment_id])
    assert len(models) == len(tracked.run.specs()) + 1


def test_a_pack_under_way_is_told_and_not_closed(uri: str, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, uri, "under-way")
    first, second = run.specs()
    run.member(first).append_epoch(epoch(1))
    run.member(second).append_epoch(epoch(1))
    finish(run, first)
    with run_lock(run.path):
        assert not sync_run(run, uri=None)
        with pytest.raises(BusyError, match="its pack is alive"):
            reconcile_run(run, uri=None, experiment=None)
    parts = shown(uri, "under-way")
    states = {part: runs[0].info.status for part, runs in parts.items()}
    assert states == {"pack": "RUNNING", "m00": "FINISHED", "m01": "RUNNING"}
    assert history(uri, parts["m01"][0]) == expected(1)
    assert len(reconcile_run(run, uri=None, experiment=None)) == 2
    assert shown(uri, "under-way")["pack"][0].info.status == "KILLED"
    assert reconcile_server(MlflowOptions(uri=uri, experiment="under-way"), silent_minutes=0) == []


def test_where_the_images_are_gone_all_but_the_models_is_told(
    tracked: Tracked, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.open(Path(shutil.copytree(tracked.run.path, tmp_path / tracked.run.path.name)))
    config = run.manifest().config
    gone = config.data.model_copy(update={"root": tmp_path / "gone"})
    manifest = run.manifest().model_copy(update={"config": config.model_copy(update={"data": gone})})
    monkeypatch.setattr(RunFolder, "manifest", lambda _: manifest)
    elsewhere = f"sqlite:///{tmp_path}/mlflow.db"
    with pytest.raises(DataError, match="gone"):
        sync_run(run, uri=elsewhere)
    parts = shown(elsewhere, "sfora")
    assert {runs[0].info.status for runs in parts.values()} == {"FINISHED"}
    assert parts["fold:gpa"][0].data.metrics["retained"] > 0


def test_another_address_keeps_the_experiment() -> None:
    options = MlflowOptions(uri="http://one:5000", experiment="mine")
    assert tracking_at(options, "http://two:5000") == MlflowOptions(uri="http://two:5000", experiment="mine")
    assert tracking_at(options, None) == options


def summarize_on_paper(run: RunFolder) -> None:
    """Write the summary of the members that have finished."""
    config = run.manifest().config
    size, epochs = len(run.finished()), config.training.epochs
    score = 0.1 * size + 0.001 * epochs
    facts = PackFacts(
        name="tiny", digest=run.manifest().digest, dataset="image_folder", dataset_digest="abc", objective="hist",
        recipe="plain", backbone="conv4", weights="none", dim=8, num_members=size, num_planned=len(run.specs()),
        selection="test", selection_metric="recall_at_1", epochs=epochs, train_classes=6, train_images=48,
        test_classes=6, test_images=48, num_queries=48, num_singletons=0,
    )  # fmt: skip
    values = {"recall_at_1": score}
    summary = Summary(
        pack=facts,
        members=tuple(MemberFacts(id=spec.id, seed=spec.seed, status="finished") for spec in run.finished()),
        single={"recall_at_1": Spread(mean=score, std=0.1, n=size, ci95=None)},
        pack_curve=tuple(CurvePoint(size=n, subsets=1, metrics=values, ci95=None) for n in range(1, size + 1)),
        folds=(FoldFacts(name="mean", dim=8, fitted_on="test", metrics=values, retained=1.0, num_members=size),),
    )
    run.write_summary(summary)


def test_a_pack_that_grows_keeps_its_runs_and_its_steps_grow(uri: str, tmp_path: Path) -> None:
    """Two members of 2 epochs, then a third, then 4 epochs for all."""
    run = paper_pack(tmp_path, uri, "grows")

    def grow() -> None:
        for spec in run.specs():
            finish(run, spec)
        summarize_on_paper(run)
        tell(run)

    grow()
    before = {part: runs[0].info.run_id for part, runs in shown(uri, "grows").items()}
    config = run.manifest().config
    config = config.model_copy(update={"seeds": (0, 1, 2)})
    run.extend(config)
    grow()
    run.extend(config.model_copy(update={"training": config.training.model_copy(update={"epochs": 4})}))
    tell(run)  # in between, the old summary is not told as news
    grow()
    parts = shown(uri, "grows")
    after = {part: runs[0].info.run_id for part, runs in parts.items()}
    assert before.items() <= after.items()
    assert set(after) - set(before) == {"m02", "curve:3x2", "curve:3x4"}
    assert all(len(runs) == 1 for runs in parts.values())
    assert [step for step, *_ in history(uri, parts["pack"][0], "recall_at_1.mean")] == [2002, 2003, 4003]
    assert [step for step, *_ in history(uri, parts["fold:mean"][0], "recall_at_1")] == [2002, 2003, 4003]
    assert [value for *_, value in history(uri, parts["pack"][0], "recall_at_1.n")] == [2, 3, 3]
    assert [step for step, *_ in history(uri, parts["curve:3x4"][0], "recall_at_1")] == [1, 2, 3]
    pack = parts["pack"][0].data
    assert (pack.params["training.epochs"], pack.tags["sfora.extended.training.epochs"]) == ("2", "4")
    assert parts["m02"][0].data.tags["mlflow.parentRunId"] == before["pack"]


def test_what_fewer_members_come_to_after_more_epochs_is_told_too(uri: str, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, uri, "shrinks", "min_members=1", seeds=3)
    for spec in run.specs():
        finish(run, spec)
    summarize_on_paper(run)
    tell(run)
    config = run.manifest().config
    run.extend(config.model_copy(update={"training": config.training.model_copy(update={"epochs": 3})}))
    first, *others = run.specs()
    for spec in others:
        run.member(spec).write_result(failed(spec, run.member(spec), "exception", "it broke"))
    # The first of the three epochs is best after all: earlier than the one that was told.
    values = {"recall_at_1": 0.4}
    run.member(first).write_result(
        MemberResult(id=first.id, seed=first.seed, status="finished", epochs=3, best_epoch=1, metrics=values)
    )
    summarize_on_paper(run)
    tell(run)
    parts = shown(uri, "shrinks")
    for part, key in (("pack", "recall_at_1.n"), ("fold:mean", "recall_at_1"), ("m00", "recall_at_1")):
        steps = [3] if part == "m00" else [3001]
        assert [step for step, *_ in history(uri, parts[part][0], key)][1:] == steps
    assert parts["pack"][0].data.metrics["recall_at_1.n"] == 1
    assert parts["pack"][0].data.tags["sfora.num_members"] == "1"
    assert parts["m00"][0].data.metrics["recall_at_1"] == 0.4


def tell(run: RunFolder) -> None:
    mirror = Mirror(run, run.manifest().config.tracking.build())
    mirror.open()
    mirror.tell_members()
    if summary_fits(run):
        mirror.tell_summary(run.summary(), time_ms=1)
    mirror.close(pack_status(run))
