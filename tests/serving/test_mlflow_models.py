from collections.abc import Iterator
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.entities import LoggedModelStatus, Run
from mlflow.exceptions import MlflowException

from sfora_ray.errors import TrackerError
from sfora_ray.folds import FittedFold
from sfora_ray.pack.local import blocks_from_folder
from sfora_ray.serving.mlflow_models import MODEL_TAG, log_models
from sfora_ray.training.boundary import failed
from sfora_ray.workflows.refold import refold
from tests.tiny import tiny_config
from tests.tiny_runs import PANDAS_OF_MLFLOW, Tracked, train_here

pytestmark = pytest.mark.filterwarnings(f"ignore:{PANDAS_OF_MLFLOW}")

SHIPPED = "mean"
"""The first of the configured folds that is a member's width."""


def runs_of(tracked: Tracked, name: str) -> dict[str, Run]:
    """Return the runs of a pack: its parent as ``pack``, members by id, folds by name."""
    client = MlflowClient(tracking_uri=tracked.uri)
    (experiment,) = client.search_experiments(filter_string="name = 'sfora'")
    found = client.search_runs([experiment.experiment_id])
    own = [run for run in found if run.data.tags.get("sfora.pack", "").startswith(f"{name}-")]
    return {run.data.tags.get("sfora.member") or run.data.tags.get("sfora.fold") or "pack": run for run in own}


def model_names(tracked: Tracked) -> list[str]:
    client = MlflowClient(tracking_uri=tracked.uri)
    (experiment,) = client.search_experiments(filter_string="name = 'sfora'")
    return sorted(model.name for model in client.search_logged_models([experiment.experiment_id]))


@pytest.fixture
def mlflow_at(tracked: Tracked) -> Iterator[None]:
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(tracked.uri)
    yield
    mlflow.set_tracking_uri(before)


@pytest.mark.usefixtures("mlflow_at")
@pytest.mark.parametrize("part", ["pack", "m01"])
def test_a_loaded_model_gives_the_vectors_of_the_run_folder(part: str, tracked: Tracked, images: Path) -> None:
    run = tracked.run
    blocks = blocks_from_folder(run, run.specs()).test
    shipped = FittedFold.load(run.fold_path(SHIPPED))
    expected = blocks.blocks[1] if part == "m01" else shipped.transform(blocks.blocks)
    model = mlflow.pyfunc.load_model(runs_of(tracked, "tiny")[part].data.tags[MODEL_TAG])
    frame = pd.DataFrame({"image": [(images / str(name)).read_bytes() for name in blocks.ids]})
    rows = model.predict(frame)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expected, atol=1e-5)


@pytest.mark.usefixtures("mlflow_at")
def test_text_in_the_column_is_refused_in_words(tracked: Tracked) -> None:
    model = mlflow.pyfunc.load_model(runs_of(tracked, "tiny")["pack"].data.tags[MODEL_TAG])
    with pytest.raises(Exception, match="image") as caught:
        model.predict(pd.DataFrame({"image": ["a.png"]}))
    assert "binary" in str(caught.value) or "bytes" in str(caught.value)


def test_logging_again_adds_no_model(tracked: Tracked) -> None:
    run, config = tracked.run, tracked.run.manifest().config
    before = model_names(tracked)
    assert {name for name in before if name.startswith("tiny-")} == {
        f"tiny-{SHIPPED}",
        "tiny-m00-seed5",
        "tiny-m01-seed3",
    }
    ids = {part: one.info.run_id for part, one in runs_of(tracked, "tiny").items()}
    log_models(run, tracked.uri, ids, SHIPPED, config.data.load(config.cache_dir).test)
    assert model_names(tracked) == before


def test_nothing_in_a_model_is_a_pickle(tracked: Tracked) -> None:
    folders = [path.parent for path in Path(tracked.uri.removeprefix("sqlite:///")).parent.rglob("MLmodel")]
    assert len(folders) >= 3
    for folder in folders:
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert any(path.suffix == ".safetensors" for path in files)
        assert not [path for path in files if path.suffix in (".pkl", ".pickle", ".pth", ".pt", ".pt2", ".bin")]
        # Every pickle since protocol 2 begins with the byte 0x80 and the protocol's number.
        assert not [path for path in files if path.read_bytes()[:1] == b"\x80"]
        assert "cloudpickle" not in (folder / "requirements.txt").read_text()


def test_members_that_did_not_finish_are_left_out(tracked: Tracked, images: Path, tmp_path: Path) -> None:
    run = train_here(
        tiny_config(images, tmp_path, "name=partial", "seeds=[0, 1, 2]", f"tracking={{uri: '{tracked.uri}'}}")
    )
    lost = run.specs()[1]
    run.member(lost).write_result(failed(lost, run.member(lost), "node_lost", "its node was lost"))
    summary = refold(run, ("gpa", "uncentred:4"), say=lambda _: None)
    assert (summary.pack.num_members, summary.pack.num_planned) == (2, 3)
    runs = runs_of(tracked, "partial")
    assert {part for part, one in runs.items() if MODEL_TAG in one.data.tags} == {"pack", "m00", "m02"}
    assert {part: one.info.status for part, one in runs.items()} == {
        "pack": "FINISHED",
        "m00": "FINISHED",
        "m01": "FAILED",
        "m02": "FINISHED",
        "concat": "FINISHED",
        "mean": "FINISHED",
        "gpa": "FINISHED",
        "wccn": "FINISHED",
        "uncentred-4": "FINISHED",
        "single:wccn": "FINISHED",
    }
    assert FittedFold.load(run.fold_path("gpa")).num_members == 2


def test_a_model_that_a_crash_left_unfinished_is_finished_and_a_twin_goes(
    tracked: Tracked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, images: Path
) -> None:
    """The process dies before the run's tag is written; a request that timed out made a second model."""
    uri, run = f"sqlite:///{tmp_path}/mlflow.db", tracked.run
    client, config = MlflowClient(uri), run.manifest().config
    examples = config.data.load(config.cache_dir).test
    experiment = client.create_experiment("crash", artifact_location=(tmp_path / "files").as_uri())
    ids = {part: client.create_run(experiment).info.run_id for part in ("pack", "m00", "m01")}

    def broken(*_: object) -> None:
        raise MlflowException("the server is away")

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_model_artifacts", broken)
        with pytest.raises(TrackerError, match="the server is away"):
            log_models(run, uri, ids, SHIPPED, examples)
    (begun,) = client.search_logged_models([experiment])
    client.create_logged_model(experiment, "twin", source_run_id=ids["m00"], tags=begun.tags)
    log_models(run, uri, ids, SHIPPED, examples)
    found = client.search_logged_models([experiment])
    assert len(found) == 3
    assert begun.model_id in {model.model_id for model in found}
    assert {model.status for model in found} == {LoggedModelStatus.READY}
