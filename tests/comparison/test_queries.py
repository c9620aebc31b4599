import shutil
from pathlib import Path

import numpy as np
import pytest

from sfora_ray.arrays import EmbeddingTable, Float64
from sfora_ray.comparison import Comparison, Source, compare
from sfora_ray.comparison.records import QueryTest
from sfora_ray.folds import FittedFold
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.statistics import cluster_bootstrap
from tests.comparison.packs import source


def of_system(comparison: Comparison, system: str, metric: str = "recall_at_1") -> QueryTest:
    (found,) = [test for test in comparison.queries if (test.system, test.metric) == (system, metric)]
    return found


def hits_by_hand(rows: Float64, labels: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[list[int], Float64]:
    """Ask each row whose class has another; take its nearest other row."""
    asked = [row for row in range(len(rows)) if (labels == labels[row]).sum() > 1]
    hits = []
    for row in asked:
        cosines = rows @ rows[row] / np.linalg.norm(rows, axis=1)
        cosines[row] = -np.inf
        hits.append(float(labels[np.argmax(cosines)] == labels[row]))
    return asked, np.array(hits)


def tables(pack: Source) -> list[EmbeddingTable]:
    assert pack.folder is not None
    return [pack.folder.embeddings(spec, "test") for spec in pack.specs]


def test_every_system_of_equal_make(compared: Comparison) -> None:
    systems = {(test.system, test.size, test.dim) for test in compared.queries}
    assert systems == {
        ("single", 1, 8),
        ("concat", 4, 32),
        ("fold:mean", 4, 8),
        ("fold:gpa", 4, 8),
        ("fold:wccn", 4, 8),
    }
    assert {(test.num_queries, test.num_classes) for test in compared.queries} == {(40, 8)}
    assert of_system(compared, "fold:gpa").fold == "gpa"
    assert of_system(compared, "concat").fold == ""


def test_single_members_query_by_query(two: tuple[Source, Source], compared: Comparison) -> None:
    found = of_system(compared, "single")
    means = []
    for pack in two:
        each = [hits_by_hand(one.embeddings.astype(float), one.labels) for one in tables(pack)]
        means.append(np.mean([hits for _, hits in each], axis=0))
    asked = hits_by_hand(tables(two[0])[0].embeddings.astype(float), tables(two[0])[0].labels)[0]
    differences = means[1] - means[0]
    assert found.difference == pytest.approx(differences.mean())
    assert (found.baseline_mean, found.other_mean) == pytest.approx([mean.mean() for mean in means])
    assert found.ci95 == pytest.approx(cluster_bootstrap(differences, tables(two[0])[0].labels[asked], 0))


def test_concatenations(two: tuple[Source, Source], compared: Comparison) -> None:
    found = of_system(compared, "concat")
    means = []
    for pack in two:
        rows = np.concatenate([one.embeddings.astype(float) for one in tables(pack)], axis=1)
        means.append(float(hits_by_hand(rows, tables(pack)[0].labels)[1].mean()))
    assert (found.baseline_mean, found.other_mean) == pytest.approx(means)


@pytest.mark.parametrize("name", ["concat", "mean", "gpa", "wccn"])
@pytest.mark.parametrize("metric", ["recall_at_1", "map_at_r"])
def test_means_are_those_of_the_summary(
    two: tuple[Source, Source], compared: Comparison, name: str, metric: str
) -> None:
    found = of_system(compared, "concat" if name == "concat" else f"fold:{name}", metric)
    facts = [{fold.name: fold for fold in pack.summary.folds}[name] for pack in two]
    assert (found.baseline_mean, found.other_mean) == pytest.approx([fold.metrics[metric] for fold in facts])


def test_singletons_as_misses_are_queries(tmp_path: Path) -> None:
    miss = "evaluation.singletons=miss"
    found = compare([source(tmp_path, "a", miss), source(tmp_path, "b", miss, noise=1.2)])
    assert {(test.num_queries, test.num_classes) for test in found.queries} == {(41, 9)}
    assert found.baseline.singletons == "miss"


def test_a_pack_with_itself_differs_by_nothing(tmp_path: Path) -> None:
    first, other = source(tmp_path, "first"), source(tmp_path, "other")
    found = compare([first, other])
    assert {(test.difference, test.p_value, test.ci95) for test in found.queries} == {(0, 1, (0, 0))}
    assert {(test.difference.mean, test.p_value, test.effect) for test in found.seeds} == {(0, 1, None)}
    assert {test.seeds_for_difference for test in found.seeds} == {None}
    assert {point.difference for point in found.sizes} == {0}


def test_folds_that_are_not_of_equal_make_are_left_out(tmp_path: Path) -> None:
    folds = "folds=[mean, 'wccn:{}', gpa, gpa_transductive]"
    found = compare([source(tmp_path, "a", folds.format(4)), source(tmp_path, "b", folds.format(4), noise=1.2)])
    assert "fold:wccn-4" in {test.system for test in found.queries}
    assert "fold:gpa_transductive" not in {test.system for test in found.queries}
    assert "gpa_transductive of a and b: fitted on the test images, an upper bound" in found.omitted


def test_members_of_other_widths(tmp_path: Path) -> None:
    narrow = source(tmp_path, "narrow", "folds=['uncentred:8', mean]")
    wide = source(tmp_path, "wide", "folds=['uncentred:8', mean]", "model.dim=12")
    found = compare([narrow, wide])
    assert {(test.system, test.dim) for test in found.queries} == {("fold:uncentred-8", 8)}
    assert found.sizes == ()
    assert "other width of a member: narrow: 8; wide: 12" in found.labels
    assert any("mean of narrow and wide: these folds end at other widths" in line for line in found.omitted)
    assert any("members are 8 and 12 wide" in line for line in found.omitted)
    assert found.seeds


def copied(pack: Source, folder: Path) -> RunFolder:
    assert pack.folder is not None
    return RunFolder(Path(shutil.copytree(pack.folder.path, folder / pack.folder.path.name)))


def test_a_fold_that_cannot_be_read_is_left_out_and_said_so(two: tuple[Source, Source], tmp_path: Path) -> None:
    run = copied(two[1], tmp_path)
    run.fold_path("gpa").write_bytes(b"torn")
    FittedFold.of("mean", np.eye(8), fitted_on="none", num_members=1, member_dim=8).save(run.fold_path("mean"))
    found = compare([two[0], Source.of_folder(run)])
    assert {test.system for test in found.queries} == {"single", "concat", "fold:wccn"}
    assert any("gpa.safetensors: not a readable fold" in line for line in found.omitted)
    assert any("mean.safetensors: is of other members, got 1 of width 8 for 4 of width 8" in x for x in found.omitted)
