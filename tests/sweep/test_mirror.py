"""What MLflow shows of a sweep folder; telling it again changes nothing."""

import math
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from sfora_ray.pack.abandoned import close_silent
from sfora_ray.pack.following import following
from sfora_ray.sweep import keeper
from sfora_ray.sweep.abandoned import close_abandoned
from sfora_ray.sweep.best import write_results
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.mirror import SweepMirror
from sfora_ray.tracking import Tracker
from tests.sweep.paper import DIM, LR, WEIGHT, end_the_last, paper_sweep, round_of

pytestmark = [
    pytest.mark.usefixtures("mlflow_store"),
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('told')}/mlflow.db"


def tracked_sweep(images: Path, folder: Path, uri: str, experiment: str) -> SweepFolder:
    tracking = f"pack.tracking={{name: mlflow, uri: '{uri}', experiment: {experiment}}}"
    return paper_sweep(images, folder, tracking)


def tracker_of(sweep: SweepFolder) -> Tracker:
    return sweep.config().pack.tracking.build()


def tell(sweep: SweepFolder) -> None:
    mirror = SweepMirror(sweep, tracker_of(sweep))
    mirror.open()
    mirror.follow()
    mirror.tell_ranking()
    mirror.close("FINISHED")


def runs_of(uri: str, experiment: str) -> dict[str, Run]:
    client = MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    assert found is not None
    runs = client.search_runs([found.experiment_id])
    by_part = {run.data.tags["sfora.key"].split("/")[1]: run for run in runs}
    assert len(by_part) == len(runs)
    return by_part


@pytest.fixture(scope="module")
def sweep(images: Path, tmp_path_factory: pytest.TempPathFactory, uri: str) -> SweepFolder:
    sweep = tracked_sweep(images, tmp_path_factory.mktemp("sweep"), uri, "told")
    end_the_last(sweep)
    write_results(sweep)
    return sweep


@pytest.fixture(scope="module")
def told(sweep: SweepFolder, uri: str, mlflow_store: None) -> dict[str, Run]:
    tell(sweep)
    return runs_of(uri, "told")


TRIALS = ["t000", "t001", "t002", "t003", "t004", "t005"]


def test_a_parent_and_a_child_for_each_trial(told: dict[str, Run]) -> None:
    assert sorted(told) == ["sweep", *TRIALS]
    parent = told["sweep"]
    assert {told[name].data.tags["mlflow.parentRunId"] for name in TRIALS} == {parent.info.run_id}
    assert (parent.data.tags["sfora.kind"], parent.data.tags["sfora.selection"]) == ("sweep", "validation")
    assert int(parent.data.tags["sfora.heartbeat"]) > 0
    assert {told[name].data.tags["sfora.kind"] for name in TRIALS} == {"trial"}


def test_states_and_reasons(told: dict[str, Run]) -> None:
    states = {name: (told[name].info.status, told[name].data.tags["sfora.status"]) for name in TRIALS}
    assert states == {
        "t000": ("FINISHED", "finished"),
        "t001": ("FINISHED", "stopped"),
        "t002": ("FAILED", "non_finite"),
        "t003": ("FINISHED", "finished"),
        "t004": ("FAILED", "failed"),
        "t005": ("FINISHED", "finished"),
    }
    tags = told["t001"].data.tags
    assert (tags["sfora.stopped_early"], tags["sfora.reason"]) == ("true", "by asha after epoch 2, at 0.7000")
    assert told["t000"].data.tags["sfora.stopped_early"] == "false"
    assert told["t002"].data.tags["sfora.reason"] == "epoch 1, step 3: the loss is nan."
    assert told["sweep"].info.status == "FINISHED"


def test_every_child_has_the_same_parameters_and_a_score(told: dict[str, Run]) -> None:
    keys = {WEIGHT, DIM, LR}
    assert all(told[name].data.params.keys() == keys for name in TRIALS)
    assert told["t003"].data.params == {WEIGHT: "0.2", DIM: "16", LR: "0.001"}
    assert (told["t003"].data.tags["sfora.seeds"], told["t003"].data.tags["sfora.folds"]) == ("5, 0", "1")
    assert told["t000"].data.params[LR] == "0.001"  # its condition does not hold: what the pack is trained with
    scores = {name: told[name].data.metrics["score"] for name in TRIALS}
    assert scores == {"t000": 0.6, "t001": 0.7, "t002": 0.0, "t003": 0.65, "t004": 0.0, "t005": 0.9}
    assert all(math.isfinite(value) for run in told.values() for value in run.data.metrics.values())


def test_each_epoch_has_the_mean_and_the_members(told: dict[str, Run], uri: str) -> None:
    client, run = MlflowClient(uri), told["t003"].info.run_id

    def history(key: str) -> list[tuple[int, float]]:
        return [(point.step, point.value) for point in client.get_metric_history(run, key)]

    assert history("recall_at_1") == [(2, 0.65), (4, 0.62)]
    assert history("recall_at_1.seed5-fold0") == [(2, 0.64), (4, 0.61)]
    assert history("map_at_r") == [(2, 0.325), (4, 0.31)]
    assert history("score") == [(4, 0.65)]


def test_the_parent_knows_space_pack_and_best(told: dict[str, Run], uri: str, sweep: SweepFolder) -> None:
    parent = told["sweep"]
    params = parent.data.params
    assert (params["space.recipe.weight.distribution"], params["searcher.name"]) == ("log_uniform", "random")
    assert (params["pack.loss.name"], params["seeds"], params["scheduler.name"]) == ("hist", "[5, 0]", "none")
    assert not any("tracking" in key or "output" in key or key == "trials" for key in params)
    assert parent.data.tags["sfora.best_trial"] == "t005"
    assert "recall_at_1 0.9000 on held-out training classes" in parent.data.tags["mlflow.note.content"]
    metrics = parent.data.metrics
    assert (metrics["best.recall_at_1"], metrics["trials.finished"], metrics["trials.stopped"]) == (0.9, 3.0, 1.0)
    artifacts = {file.path for file in MlflowClient(uri).list_artifacts(parent.info.run_id)}
    assert {"best.yaml", "ranking.json", "sweep.json"} <= artifacts


def test_telling_again_changes_nothing(sweep: SweepFolder, told: dict[str, Run], uri: str) -> None:
    client = MlflowClient(uri)

    def everything() -> dict[str, object]:
        return {
            name: (
                run.info.run_id,
                run.info.status,
                run.data.params,
                {key: value for key, value in run.data.tags.items() if key != "sfora.heartbeat"},
                {key: len(client.get_metric_history(run.info.run_id, key)) for key in run.data.metrics},
            )
            for name, run in runs_of(uri, "told").items()
        }

    before = everything()
    tell(sweep)
    assert everything() == before


def test_turns_tell_what_is_new_and_open_new_trials(images: Path, tmp_path: Path, uri: str) -> None:
    sweep = tracked_sweep(images, tmp_path, uri, "turns")
    mirror = SweepMirror(sweep, tracker_of(sweep))
    list(mirror.turn())
    running = {name for name, run in runs_of(uri, "turns").items() if run.info.status == "RUNNING"}
    assert running == {"sweep", "t005"}
    sweep.begin_trial(6, {WEIGHT: 5.0, DIM: 8})
    end_the_last(sweep)
    list(mirror.turn())
    runs = runs_of(uri, "turns")
    assert {name for name, run in runs.items() if run.info.status == "RUNNING"} == {"sweep", "t006"}
    assert runs["t005"].data.metrics["recall_at_1"] == 0.4
    mirror.close("KILLED", "interrupted")
    runs = runs_of(uri, "turns")
    assert (runs["sweep"].info.status, runs["t006"].info.status) == ("KILLED", "KILLED")
    assert runs["sweep"].data.tags["sfora.reason"] == "interrupted"


def test_a_damaged_trial_keeps_no_other_from_being_told(images: Path, tmp_path: Path, uri: str) -> None:
    sweep = tracked_sweep(images, tmp_path, uri, "damaged")
    mirror = SweepMirror(sweep, tracker_of(sweep))
    sweep.trial(0).rounds_path.write_text("no json\n")
    with pytest.raises(ValueError, match="line 1: not JSON"):
        raise_as_value_error(mirror)
    assert runs_of(uri, "damaged")["t003"].data.metrics["score"] == 0.65


def raise_as_value_error(mirror: SweepMirror) -> None:
    try:
        list(mirror.turn())
    except Exception as error:
        raise ValueError(str(error)) from error


def test_changed_values_are_metrics_not_parameters(images: Path, tmp_path: Path, uri: str) -> None:
    sweep = tracked_sweep(images, tmp_path, uri, "pbt")
    sweep.trial(5).append_round(round_of(4, 0.5).model_copy(update={"values": {WEIGHT: 4.8, "x": "text", "y": True}}))
    list(SweepMirror(sweep, tracker_of(sweep)).turn())
    run = runs_of(uri, "pbt")["t005"]
    assert run.data.params[WEIGHT] == "4.0"
    assert {key for key in run.data.metrics if key.startswith("tried.")} == {f"tried.{WEIGHT}"}
    close_abandoned(sweep, tracker_of(sweep))


def test_a_thread_follows_a_sweep(images: Path, tmp_path: Path, uri: str) -> None:
    sweep = tracked_sweep(images, tmp_path, uri, "followed")
    mirror = SweepMirror(sweep, tracker_of(sweep))
    with following(mirror, every_seconds=0.02):
        end = time.monotonic() + 60
        while "score" not in _metrics_of_the_last_told(uri) and time.monotonic() < end:
            time.sleep(0.2)
    with mirror.busy:
        assert "score" in _metrics_of_the_last_told(uri)
        mirror.close("KILLED")


def _metrics_of_the_last_told(uri: str) -> dict[str, float]:
    """Return the metrics of the last trial that has ended; none while the experiment or the trial is not there."""
    if MlflowClient(uri).get_experiment_by_name("followed") is None:
        return {}
    run = runs_of(uri, "followed").get("t004")
    return {} if run is None else run.data.metrics


def test_what_a_dead_driver_left_is_closed(images: Path, tmp_path: Path, uri: str) -> None:
    sweep = tracked_sweep(images, tmp_path, uri, "dead")
    SweepMirror(sweep, tracker_of(sweep)).open()
    closed = {one.name: (one.status, bool(one.reason)) for one in close_abandoned(sweep, tracker_of(sweep))}
    assert closed.pop("search") == ("KILLED", True)
    assert closed == {
        "t000 of search": ("FINISHED", False),
        "t001 of search": ("FINISHED", False),
        "t002 of search": ("FAILED", False),
        "t003 of search": ("FINISHED", False),
        "t004 of search": ("FAILED", False),
        "t005 of search": ("KILLED", True),
    }
    assert close_abandoned(sweep, tracker_of(sweep)) == []


def test_the_keeper_closes_and_the_silent_are_found(images: Path, tmp_path: Path, uri: str) -> None:
    sweep = tracked_sweep(images, tmp_path, uri, "silent")
    mirror = SweepMirror(sweep, tracker_of(sweep))
    mirror.open()
    tracker_of(sweep).set_tags(mirror.run_id("sweep"), {"sfora.heartbeat": "1000"})
    closed = close_silent(tracker_of(sweep), silent_minutes=10)
    assert (len(closed), closed[-1].name) == (7, "search")
    mirror.open()
    assert keeper.closed(sweep.path)
    assert {run.info.status for run in runs_of(uri, "silent").values()} == {"FINISHED", "FAILED", "KILLED"}
