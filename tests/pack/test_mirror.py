"""What MLflow shows of a run folder; telling it again changes nothing."""

from __future__ import annotations

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from sfora_ray.config.member import MemberResult
from sfora_ray.folds import Moments
from sfora_ray.pack.curve import size_curve
from sfora_ray.pack.folding import fold_pack
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summarize import summarize
from sfora_ray.pack.told import flat
from sfora_ray.tracking import MlflowOptions
from sfora_ray.training.member_folder import EpochRecord
from tests.pack.blocks import pack_blocks
from tests.tiny import tiny_config

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def epoch(number: int) -> EpochRecord:
    return EpochRecord(
        epoch=number,
        step=4 * number,
        time_ms=1000 + number,
        seconds=0.5,
        images_per_second=96.0,
        loss={"total": 3.0 / number, "distillation": 1.0},
        lr={"head.decay": 1e-3},
        state={"dead_variance_share": 0.5},
        metrics={"test": {"recall_at_1": 0.1 * number}},
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A pack of three on paper: two members finished, the third failed."""
    place = tmp_path_factory.mktemp("told")
    tracking = f"tracking={{name: mlflow, uri: 'sqlite:///{place}/mlflow.db', experiment: told}}"
    config = tiny_config(place / "photos", place, "seeds=[0, 1, 2]", tracking)
    folder = RunFolder.create(config, weights="none")
    for spec in folder.specs()[:2]:
        for number in (1, 2, 3):
            folder.member(spec).append_epoch(epoch(number))
        values = {"recall_at_1": 0.3, "nmi": 0.5}
        folder.member(spec).write_result(
            MemberResult(id=spec.id, seed=spec.seed, status="finished", best_epoch=3, metrics=values)
        )
    folder.member(folder.specs()[2]).write_result(
        MemberResult(
            id="m02",
            seed=2,
            status="failed",
            cause="non_finite",
            reason="epoch 1, step 1: the loss is nan.",
            restarts=("signal 9", "its node was lost"),
        )
    )
    blocks = pack_blocks(2)
    outcomes = fold_pack(blocks, _moments(blocks), config.folds, config.evaluation, "cpu")
    curve = size_curve(blocks.test, config.evaluation, "cpu")
    folder.write_summary(summarize(folder, blocks, "abc", curve, [one.facts for one in outcomes]))
    return folder


def _moments(blocks: PackBlocks) -> Moments:
    return Moments.of(blocks.train.blocks, blocks.train.labels)


def tell(folder: RunFolder) -> None:
    mirror = Mirror(folder, folder.manifest().config.tracking.build())
    mirror.open()
    mirror.follow()
    mirror.tell_members()
    mirror.tell_summary(folder.summary(), time_ms=5000)
    mirror.tell_files()
    mirror.close("FINISHED")


def client_of(folder: RunFolder) -> MlflowClient:
    options = folder.manifest().config.tracking
    assert isinstance(options, MlflowOptions)
    return MlflowClient(options.uri)


def runs_of(folder: RunFolder) -> dict[str, Run]:
    """Return the tracker's runs by the part of the pack that each shows."""
    client = client_of(folder)
    experiment = client.get_experiment_by_name("told")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id])
    return {run.data.tags["sfora.key"].split("/")[1]: run for run in found}


@pytest.fixture(scope="module")
def told(run: RunFolder) -> dict[str, Run]:
    tell(run)
    return runs_of(run)


def test_a_parent_a_child_for_each_member_and_each_fold(told: dict[str, Run]) -> None:
    folds = {f"fold:{name}" for name in ("concat", "mean", "gpa", "wccn")}
    assert set(told) == {"pack", "m00", "m01", "m02", "curve:2x2"} | folds
    parent = told["pack"].info.run_id
    children = {part for part, run in told.items() if run.data.tags.get("mlflow.parentRunId") == parent}
    assert children == set(told) - {"pack"}


def test_a_failed_member_is_a_failed_run_with_its_reason(told: dict[str, Run]) -> None:
    assert {part for part, run in told.items() if run.info.status == "FAILED"} == {"m02"}
    assert {run.info.status for part, run in told.items() if part != "m02"} == {"FINISHED"}
    tags = told["m02"].data.tags
    assert (tags["sfora.cause"], tags["sfora.reason"]) == ("non_finite", "epoch 1, step 1: the loss is nan.")
    assert (tags["sfora.restarts"], tags["sfora.restart_reasons"]) == ("2", "signal 9; its node was lost")
    assert told["m00"].data.tags["sfora.restarts"] == "0"


def test_a_member_that_goes_on_no_longer_says_why_it_had_failed(run: RunFolder, told: dict[str, Run]) -> None:
    (failed,) = (run.member(spec) for spec in run.specs() if spec.id == "m02")
    result = failed.result()
    assert result is not None
    failed.result_path.unlink()
    try:
        Mirror(run, run.manifest().config.tracking.build()).open()
        tags = runs_of(run)["m02"].data.tags
        assert not {"sfora.status", "sfora.cause", "sfora.reason"} & tags.keys()
        assert runs_of(run)["m02"].info.status == "RUNNING"
    finally:
        failed.write_result(result)


def test_parameters_are_flat_and_members_have_their_seed(told: dict[str, Run]) -> None:
    for part in ("pack", "m00", "m01", "m02"):
        params = told[part].data.params
        assert (params["loss.name"], params["loss.tau"], params["optimizer.lr"]) == ("hist", "32.0", "0.001")
        assert params["model.backbone.widths"] == "[4, 4, 8, 8]"
        assert params["folds.1.name"] == "gpa"
        assert not any(key.startswith(("tracking", "output", "cache_dir")) for key in params)
    assert [told[part].data.params["seed"] for part in ("m00", "m01", "m02")] == ["0", "1", "2"]
    assert "seed" not in told["pack"].data.params


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("loss", [3.0, 1.5, 1.0]),
        ("loss.distillation", [1.0] * 3),
        ("lr.head.decay", [1e-3] * 3),
        ("state.dead_variance_share", [0.5] * 3),
        ("test.recall_at_1", [0.1, 0.2, 0.3]),
    ],
)
def test_epochs_are_curves(run: RunFolder, told: dict[str, Run], key: str, values: list[float]) -> None:
    points = client_of(run).get_metric_history(told["m00"].info.run_id, key)
    assert [point.step for point in points] == [1, 2, 3]
    assert [point.value for point in points] == pytest.approx(values)
    assert [point.timestamp for point in points] == [1001, 1002, 1003]


def test_the_parent_tells_the_story(run: RunFolder, told: dict[str, Run]) -> None:
    metrics = told["pack"].data.metrics
    summary = run.summary()
    assert metrics["recall_at_1.mean"] == pytest.approx(0.3)
    assert metrics["recall_at_1.n"] == 2
    said = told["pack"].data.tags["mlflow.note.content"]
    assert "one member 30.00 +- " in said
    assert "(n = 2)" in said
    for fold in summary.folds:
        assert metrics[f"fold.{fold.name}.recall_at_1"] == pytest.approx(fold.metrics["recall_at_1"])
        assert told[f"fold:{fold.name}"].data.metrics["retained"] == pytest.approx(fold.retained)
    curve = client_of(run).get_metric_history(told["curve:2x2"].info.run_id, "recall_at_1")
    assert [point.step for point in curve] == [1, 2]
    expected = [point.metrics["recall_at_1"] for point in summary.pack_curve]
    assert [point.value for point in curve] == pytest.approx(expected)
    assert told["pack"].data.tags["sfora.num_members"] == "2"
    assert told["fold:gpa"].data.tags["sfora.fitted_on"] == "train"


def test_records_are_artifacts_of_the_parent(run: RunFolder, told: dict[str, Run]) -> None:
    names = {file.path for file in client_of(run).list_artifacts(told["pack"].info.run_id)}
    assert {"manifest.json", "summary.json"} <= names


def test_telling_again_changes_nothing(run: RunFolder, told: dict[str, Run]) -> None:
    client = client_of(run)

    def points() -> dict[tuple[str, str], list[tuple[int, float]]]:
        return {
            (part, key): [(point.step, point.value) for point in client.get_metric_history(shown.info.run_id, key)]
            for part, shown in runs_of(run).items()
            for key in shown.data.metrics
        }

    before = points()
    tell(run)
    again = runs_of(run)
    assert {part: shown.info.run_id for part, shown in again.items()} == {
        part: shown.info.run_id for part, shown in told.items()
    }
    assert points() == before
    assert again["m02"].info.status == "FAILED"


def test_an_interrupted_pack_is_killed_but_not_the_members_that_ended(run: RunFolder, told: dict[str, Run]) -> None:
    mirror = Mirror(run, run.manifest().config.tracking.build())
    mirror.open()
    mirror.close("KILLED")
    states = {part: shown.info.status for part, shown in runs_of(run).items()}
    assert (states["pack"], states["m02"]) == ("KILLED", "FAILED")
    assert (states["m00"], states["fold:gpa"]) == ("FINISHED", "FINISHED")


def test_nested_values_become_dotted_text() -> None:
    values = {"a": {"b": 1, "c": [1, 2], "d": {}}, "e": [{"f": None}], "output": "x", "seeds": [1]}
    assert flat(values, leave_out=("seeds",)) == {"a.b": "1", "a.c": "[1, 2]", "a.d": "{}", "e.0.f": "None"}
