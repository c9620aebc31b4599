import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from sfora_ray.errors import InputError, RunFolderError, TrackerError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.tracking import MlflowOptions, Tracker
from sfora_ray.tracking.none import NoTracker
from sfora_ray.workflows.ablation import ablate, refuse_unlike
from sfora_ray.workflows.compare import ComparisonOutcome, compare_folders, compare_runs
from sfora_ray.workflows.compared import find_pack
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.refold import refold
from sfora_ray.workflows.tell_comparison import comparison_digest, metric_points
from tests.reporting.comparison.synthetic import make_comparison
from tests.tiny import tiny_config, tiny_values
from tests.tiny_runs import Tracked, train_here, write_config


def quiet(_: str) -> None:
    return


@pytest.fixture(scope="module")
def plain(images: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A pack of the same seeds without distillation."""
    place = tmp_path_factory.mktemp("plain")
    run = train_here(tiny_config(images, place, "recipe={name: plain}", "name=plain"))
    refold(run, (), say=quiet)
    return run


@pytest.fixture(scope="module")
def outcome(tracked: Tracked, plain: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> ComparisonOutcome:
    """The tracked pack against the plain one, told to the tracked pack's own MLflow."""
    places = [str(tracked.run.path), str(plain.path)]
    return compare_runs(places, output=tmp_path_factory.mktemp("report"), tracking=None, say=quiet)


def of_kind(uri: str, kind: str) -> list[Run]:
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("sfora")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id], f"tags.`sfora.kind` = '{kind}'"))


def test_a_comparison_is_written_and_told_once(tracked: Tracked, plain: RunFolder, outcome: ComparisonOutcome) -> None:
    assert outcome.told
    again = compare_folders([tracked.run, plain], None, outcome.paths.html.parent, told_to(tracked), quiet)
    assert again.comparison == outcome.comparison
    (run,) = of_kind(tracked.uri, "comparison")
    assert run.info.run_name == "compare: tiny vs plain"
    assert run.info.status == "FINISHED"
    assert run.data.tags["sfora.compared"] == "tiny, plain"
    assert run.data.tags["sfora.selection"] == "test"
    assert "test" in run.data.tags["sfora.labels"]
    test = next(test for test in outcome.comparison.seeds if test.metric == "recall_at_1")
    client = MlflowClient(tracked.uri)
    told = client.get_metric_history(run.info.run_id, "difference.recall_at_1")
    assert [point.value for point in told] == [test.difference.mean]
    assert run.data.metrics["difference.recall_at_1.p_holm"] == test.p_holm
    sizes = client.get_metric_history(run.info.run_id, "difference_by_size.recall_at_1")
    assert [point.step for point in sizes] == [1, 2]
    files = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert files == {"index.html", "comparison.md", "comparison.json", "figures"}


def told_to(tracked: Tracked) -> Tracker:
    return MlflowOptions(uri=tracked.uri).build()


def test_the_report_lies_below_the_output_folder_of_the_first(plain: RunFolder, tracked: Tracked) -> None:
    found = compare_runs([str(plain.path), str(tracked.run.path)], output=None, tracking=None, say=quiet)
    assert found.paths.html.parent == plain.path.parent / "compare" / comparison_digest(found.comparison)
    assert found.paths.record.is_file()


def run_of(tracked: Tracked, kind: str) -> str:
    """Return the id of one of the tracked pack's own runs; other tests tell of other packs there."""
    own = [run for run in of_kind(tracked.uri, kind) if run.data.tags["sfora.pack"] == tracked.run.path.name]
    return str(own[0].info.run_id)


@pytest.mark.parametrize("part", ["pack", "member"])
def test_a_run_id_is_the_run_folder_where_that_is_here(tracked: Tracked, part: str) -> None:
    found = find_pack(run_of(tracked, part), tracked.uri)
    assert found.folder is not None
    assert found.folder.path == tracked.run.path
    assert found.summary == tracked.summary


def test_a_run_id_without_its_folder_is_compared_by_its_records(
    tracked: Tracked, plain: RunFolder, tmp_path: Path
) -> None:
    aside = tmp_path / "aside"
    shutil.move(tracked.run.path, aside)
    try:
        run_id = run_of(tracked, "pack")
        found = compare_runs([run_id, str(plain.path)], output=tmp_path / "report", tracking=tracked.uri, say=quiet)
    finally:
        shutil.move(aside, tracked.run.path)
    entry = found.comparison.baseline
    assert (entry.source, entry.has_folder) == (f"MLflow run {run_id}", False)
    assert found.comparison.seeds
    assert not found.comparison.queries
    assert found.comparison.omitted


def test_a_run_id_that_is_not_there(tracked: Tracked) -> None:
    with pytest.raises(InputError, match="no run 0123456789abcdef0123456789abcdef"):
        find_pack("0123456789abcdef" * 2, tracked.uri)


def test_a_run_id_of_no_pack(tracked: Tracked, outcome: ComparisonOutcome) -> None:
    with pytest.raises(InputError, match="is of no pack"):
        find_pack(of_kind(tracked.uri, "comparison")[0].info.run_id, tracked.uri)


def test_a_config_names_the_pack_that_was_run_with_it(plain: RunFolder, images: Path, tmp_path: Path) -> None:
    values = {**tiny_values(images, plain.path.parents[1]), "recipe": {"name": "plain"}, "name": "plain"}
    path = write_config(tmp_path / "plain.yaml", values)
    found = find_pack(str(path), "sqlite:///none.db").folder
    assert found is not None
    assert found.path == plain.path
    fresh = write_config(tmp_path / "fresh.yml", {**values, "seeds": [77, 78]})
    with pytest.raises(RunFolderError, match=f"Train it: sfora-ray pack run {fresh}"):
        find_pack(str(fresh), "sqlite:///none.db")


def test_one_pack_or_one_twice_is_refused(plain: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least two packs, got 1"):
        compare_runs([str(plain.path)], output=tmp_path, tracking=None, say=quiet)
    with pytest.raises(InputError, match="every pack may stand once"):
        compare_runs([str(plain.path)] * 2, output=tmp_path / "report", tracking=None, say=quiet)
    assert not (tmp_path / "report").exists()


class Absent(NoTracker):
    """A tracker that is away."""

    def check(self) -> None:
        raise TrackerError("MLflow: does not answer. Start the server.")


def test_an_absent_tracker_is_a_warning(tracked: Tracked, plain: RunFolder, tmp_path: Path) -> None:
    said: list[str] = []
    found = compare_folders([tracked.run, plain], ["A", "B"], tmp_path, Absent(), said.append)
    assert not found.told
    assert [line for line in said if line.startswith("warning: MLflow: does not answer")]
    assert found.paths.html.is_file()
    assert [entry.label for entry in found.comparison.entries] == ["A", "B"]


def test_metrics_of_several_packs_stand_below_their_names() -> None:
    keys = {point.key for point in metric_points(make_comparison(labels=("a", "b", "c/d")), 1)}
    assert {"b/difference.recall_at_1", "c_d/difference.recall_at_1.ci95_lo"} <= keys
    assert "b/difference.over_queries.fold:wccn.recall_at_1.p_holm" in keys
    one = {point.key: point for point in metric_points(make_comparison(labels=("a", "b")), 1)}
    assert one["difference.recall_at_1.ci95_hi"].value == pytest.approx(0.0120)


def test_the_digest_knows_what_was_found_and_not_where() -> None:
    comparison = make_comparison()
    entries = tuple(entry.model_copy(update={"source": "/elsewhere"}) for entry in comparison.entries)
    assert comparison_digest(comparison.model_copy(update={"entries": entries})) == comparison_digest(comparison)
    assert comparison_digest(comparison.model_copy(update={"labels": ()})) != comparison_digest(comparison)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ((), "must be two packs"),
        (("seeds=[1,2]", "name=other"), r"same seeds, got \{3, 5\} and \{1, 2\}"),
        (("model.dim=16",), "same model.dim, got 8 and 16"),
        (("evaluation.singletons=miss",), "evaluation.singletons"),
        (("data.split={kind: seeded}", "name=other"), "same data"),
    ],
)
def test_an_ablation_of_unlike_packs_is_refused_before_training(
    images: Path, tmp_path: Path, overrides: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        refuse_unlike(tiny_config(images, tmp_path), tiny_config(images, tmp_path, *overrides))
    assert not (tmp_path / "runs").exists()


def test_an_ablation_finds_what_is_trained_and_compares_every_size(
    images: Path, plain: RunFolder, tmp_path: Path
) -> None:
    place = plain.path.parents[1]
    other = tiny_config(images, place, "name=distilled")
    train_here(other)
    first = tiny_config(images, place, "recipe={name: plain}", "name=plain")
    before = [plain.member(spec).result_path.stat().st_mtime_ns for spec in plain.specs()]
    found = ablate(first, other, Launcher(local=True), output=tmp_path, watch=lambda _: None, say=quiet)
    assert [plain.member(spec).result_path.stat().st_mtime_ns for spec in plain.specs()] == before
    points = [point for point in found.comparison.sizes if point.metric == "recall_at_1"]
    assert [(point.baseline, point.other, point.size) for point in points] == [
        ("plain", "distilled", 1),
        ("plain", "distilled", 2),
    ]
