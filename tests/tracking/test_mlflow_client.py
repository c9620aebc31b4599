"""The tracker against real stores: SQLite directly, and a server of its own process."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mlflow import MlflowClient

from sfora_ray.errors import TrackerError
from sfora_ray.tracking.base import MetricPoint, Tracker
from sfora_ray.tracking.mlflow import MlflowOptions

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('database')}/mlflow.db"


@pytest.fixture(scope="module", params=["database", "server"])
def uri(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def tracker(uri: str) -> Tracker:
    return tracker_of(uri)


def tracker_of(uri: str, experiment: str = "sfora") -> Tracker:
    return MlflowOptions(uri=uri, experiment=experiment).build()


def points(key: str, values: list[float], start: int = 0) -> list[MetricPoint]:
    return [MetricPoint(key, value, start + step, 1000 + step) for step, value in enumerate(values)]


def curve(uri: str, run: str, key: str) -> list[tuple[int, float]]:
    return sorted((point.step, point.value) for point in MlflowClient(uri).get_metric_history(run, key))


def test_check_succeeds(tracker: Tracker) -> None:
    tracker.check()


def test_opening_again_finds_the_run_and_sets_it_running(uri: str, tracker: Tracker) -> None:
    client = MlflowClient(uri)
    pack = tracker.open_run("again", "pack", parent=None, tags={"sfora.pack": "p"})
    member = tracker.open_run("again/m00", "m00", parent=pack, tags={"sfora.seed": "3"})
    tracker.close_run(member, "FAILED")
    assert client.get_run(member).info.status == "FAILED"
    other = tracker_of(uri)
    assert other.open_run("again", "pack", parent=None, tags={}) == pack
    assert other.open_run("again/m00", "m00", parent=pack, tags={"sfora.seed": "3", "try": "2"}) == member
    run = client.get_run(member)
    assert run.info.status == "RUNNING"
    assert run.info.run_name == "m00"
    tags = run.data.tags
    assert (tags["mlflow.parentRunId"], tags["sfora.key"], tags["sfora.seed"]) == (pack, "again/m00", "3")
    assert tags["try"] == "2"
    children = client.search_runs([run.info.experiment_id], f"tags.mlflow.parentRunId = '{pack}'")
    assert [child.info.run_id for child in children] == [member]


@pytest.mark.parametrize("status", ["FINISHED", "FAILED", "KILLED"])
def test_a_closed_run_has_its_state_and_end(uri: str, tracker: Tracker, status: str) -> None:
    run = tracker.open_run(f"close-{status}", "r", parent=None, tags={})
    tracker.close_run(run, status)  # type: ignore[arg-type]
    info = MlflowClient(uri).get_run(run).info
    assert info.status == status
    assert info.end_time >= info.start_time


def test_more_than_one_request_of_params_metrics_and_tags(uri: str, tracker: Tracker) -> None:
    run = tracker.open_run("limits", "r", parent=None, tags={})
    params = {f"p{index}": str(index) for index in range(101)}
    tracker.log_params(run, params)
    tracker.set_tags(run, {f"t{index}": str(index) for index in range(101)})
    tracker.log_metrics(run, points("loss", [float(index) for index in range(1001)]))
    data = MlflowClient(uri).get_run(run).data
    assert data.params == params
    assert all(data.tags[f"t{index}"] == str(index) for index in range(101))
    assert curve(uri, run, "loss") == [(index, float(index)) for index in range(1001)]


def test_long_values_are_told_by_digest(uri: str, tracker: Tracker) -> None:
    run = tracker.open_run("long", "r", parent=None, tags={})
    tracker.log_params(run, {"fits": "x" * 6000, "long": "x" * 6001, "empty": ""})
    tracker.set_tags(run, {"long": "y" * 8001})
    data = MlflowClient(uri).get_run(run).data
    assert data.params["fits"] == "x" * 6000
    assert data.params["empty"] == ""
    assert "long" not in data.params
    assert len(data.params["long.sha256"]) == 64
    assert len(data.tags["long.sha256"]) == 64


def test_params_may_be_told_again_but_not_changed(uri: str, tracker: Tracker) -> None:
    run = tracker.open_run("params", "r", parent=None, tags={})
    tracker.log_params(run, {"lr": "1e-4", "epochs": "60"})
    tracker_of(uri).log_params(run, {"lr": "1e-4", "epochs": "60", "more": "1"})
    with pytest.raises(TrackerError, match=r"parameter 'lr': .* got '2e-4' after '1e-4'\. Start a new run"):
        tracker.log_params(run, {"lr": "2e-4", "late": "1"})
    assert MlflowClient(uri).get_run(run).data.params == {"lr": "1e-4", "epochs": "60", "more": "1"}


def test_a_resumed_writer_neither_repeats_nor_goes_back(uri: str, tracker: Tracker) -> None:
    run = tracker.open_run("resume", "r", parent=None, tags={})
    tracker.log_metrics(run, points("R@1", [0.1, 0.2, 0.3]))
    tracker.log_metrics(run, points("R@1", [0.1, 0.2, 0.3]))
    resumed = tracker_of(uri)
    resumed.log_metrics(run, points("R@1", [9.0, 0.4, 0.5], start=2))
    resumed.log_metrics(run, points("loss", [1.0]))
    assert curve(uri, run, "recall_at_1") == [(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.4), (4, 0.5)]
    assert curve(uri, run, "loss") == [(0, 1.0)]


def test_values_that_are_no_numbers_are_counted_not_sent(uri: str, tracker: Tracker) -> None:
    run = tracker.open_run("nan", "r", parent=None, tags={})
    tracker.log_metrics(run, points("loss", [1.0, math.nan, math.inf, 2.0]))
    resumed = tracker_of(uri)
    resumed.log_metrics(run, points("loss", [1.0, math.nan, math.inf, 2.0, -math.inf]))
    assert curve(uri, run, "loss") == [(0, 1.0), (3, 2.0)]
    assert curve(uri, run, "nonfinite.loss") == [(1, 1.0), (2, 2.0), (4, 3.0)]


def test_a_data_set_told_twice_is_there_once(uri: str, tracker: Tracker) -> None:
    run = tracker.open_run("data", "r", parent=None, tags={})
    for _ in range(2):
        tracker.log_dataset(run, "glyphs", "0123456789abcdef" * 4, "train")
    inputs = MlflowClient(uri).get_run(run).inputs
    assert inputs is not None
    (entry,) = inputs.dataset_inputs
    assert (entry.dataset.name, entry.dataset.digest) == ("glyphs", ("0123456789abcdef" * 4)[:36])
    assert [(tag.key, tag.value) for tag in entry.tags] == [("mlflow.data.context", "train")]
    with pytest.raises(TrackerError, match="1 to 500 characters, got 501"):
        tracker.log_dataset(run, "n" * 501, "d", "train")


def test_files_arrive(uri: str, tracker: Tracker, tmp_path: Path) -> None:
    run = tracker.open_run("files", "r", parent=None, tags={})
    file = tmp_path / "curve.csv"
    file.write_text("step,loss\n0,1.0\n")
    tracker.log_file(run, file)
    tracker.log_file(run, file, "report/figures")
    tracker.log_file(run, file, "report/figures")
    client = MlflowClient(uri)
    assert [item.path for item in client.list_artifacts(run, "report/figures")] == ["report/figures/curve.csv"]
    copy = client.download_artifacts(run, "curve.csv", str(tmp_path))
    assert Path(copy).read_text() == file.read_text()
    with pytest.raises(TrackerError, match="there must be such a file"):
        tracker.log_file(run, tmp_path / "absent")


def test_files_lie_beside_an_sqlite_database_whatever_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(home)
    tracker = tracker_of("sqlite:///mlflow.db", "a pack")
    monkeypatch.chdir(elsewhere)
    run = tracker.open_run("k", "r", parent=None, tags={})
    (elsewhere / "f.txt").write_text("x")
    tracker.log_file(run, elsewhere / "f.txt")
    assert (home / "mlflow.db").is_file()
    assert (home / "mlruns" / "a-pack" / run / "artifacts" / "f.txt").read_text() == "x"
    assert sorted(path.name for path in elsewhere.iterdir()) == ["f.txt"]


def test_nine_writers_at_once(uri: str) -> None:
    def write(member: int) -> str:
        mine = tracker_of(uri, "nine")
        run = mine.open_run(f"nine/m{member}", f"m{member}", parent=None, tags={})
        mine.log_params(run, {"member": str(member)})
        for epoch in range(4):
            mine.log_metrics(run, points("loss", [member + 0.5], start=epoch))
        mine.close_run(run, "FINISHED")
        return run

    with ThreadPoolExecutor(9) as pool:
        runs = list(pool.map(write, range(9)))
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("nine")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_id for run in found) == sorted(runs)
    assert {run.info.status for run in found} == {"FINISHED"}
    for member, run in enumerate(runs):
        assert curve(uri, run, "loss") == [(epoch, member + 0.5) for epoch in range(4)]


def test_a_deleted_experiment_is_named(uri: str) -> None:
    client = MlflowClient(uri)
    client.delete_experiment(client.create_experiment("gone"))
    with pytest.raises(TrackerError, match=r"got deleted 'gone'\. Restore it"):
        tracker_of(uri, "gone").open_run("k", "r", parent=None, tags={})
