from pathlib import Path

import numpy as np
import pytest

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.comparison import Source, compare
from sfora_ray.errors import InputError, SforaError
from tests.comparison.packs import make_pack, source, table, without_folder


def test_one_pack_is_no_comparison(two: tuple[Source, Source]) -> None:
    with pytest.raises(InputError, match="at least one other pack, got 1"):
        compare(two[:1])


def test_other_data_are_refused_by_name(tmp_path: Path) -> None:
    first, other = make_pack(tmp_path, "first"), make_pack(tmp_path, "other", digest="f" * 16)
    with pytest.raises(InputError, match=r"first and other were not tested on the same images, got image_folder 0123"):
        compare([Source.of_folder(first), Source.of_folder(other)])
    with pytest.raises(InputError, match="not tested on the same images"):
        compare([without_folder(Source.of_folder(run)) for run in (first, other)])


def test_other_rules_for_singletons_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"evaluation.singletons 'skip' and 'miss'"):
        compare([source(tmp_path, "first"), source(tmp_path, "other", "evaluation.singletons=miss")])


@pytest.mark.parametrize("what", ["ids", "labels", "rows"])
def test_other_queries_are_refused_though_the_digest_agrees(tmp_path: Path, what: str) -> None:
    first, run = source(tmp_path, "first"), make_pack(tmp_path, "other")
    for spec in run.specs():
        old = table(spec.seed, "test", noise=1)
        ids, labels = old.ids.copy(), old.labels.copy()
        ids[7], labels[7] = ("other/7.png", labels[7]) if what == "ids" else (ids[7], labels[7] + 1)
        keep = slice(None, -1) if what == "rows" else slice(None)
        new = EmbeddingTable(ids[keep], labels[keep], old.embeddings[keep])
        new.save(run.member(spec).embeddings_path("test"))
    got = {"ids": "'other/7.png' of class 2 in row 7", "labels": "of class 3 in row 7", "rows": "41 and 40 rows"}
    with pytest.raises(InputError, match=f"first and other were not tested on the same queries, got .*{got[what]}"):
        compare([first, Source.of_folder(run)])


def test_a_row_that_is_not_finite_is_named(tmp_path: Path) -> None:
    first, run = source(tmp_path, "first"), make_pack(tmp_path, "other")
    spec = run.specs()[1]
    old = table(spec.seed, "test", noise=1)
    old.embeddings[4] = np.nan
    old.save(run.member(spec).embeddings_path("test"))
    with pytest.raises(SforaError, match=r"m01-seed3: row 4 \(image test/4.png\) is not finite"):
        compare([first, Source.of_folder(run)])


def test_labels_must_differ(two: tuple[Source, Source]) -> None:
    for labels in (["a", "a"], ["a"], ["a", ""]):
        with pytest.raises(InputError, match="a label of its own"):
            compare(two, labels)
    assert [entry.label for entry in compare([without_folder(pack) for pack in two], ["a", "b"]).entries] == ["a", "b"]


def test_names_that_repeat_get_their_digest(tmp_path: Path) -> None:
    packs = [source(tmp_path, "same"), source(tmp_path, "same", "optimizer.lr=0.01"), source(tmp_path, "another")]
    found = [entry.label for entry in compare(packs).entries]
    assert found == [*(f"same-{pack.manifest.digest}" for pack in packs[:2]), "another"]
    again = [without_folder(packs[2]), packs[2]]
    name = f"another-{packs[2].manifest.digest}"
    assert [entry.label for entry in compare(again).entries] == [f"{name} #1", f"{name} #2"]


def told(tmp_path: Path, *overrides: str, weights: str = "none") -> tuple[str, ...]:
    other = Source.of_folder(make_pack(tmp_path, "other", *overrides, weights=weights))
    return compare([without_folder(source(tmp_path, "first")), without_folder(other)]).labels


@pytest.mark.parametrize(
    ("override", "label"),
    [
        ("selection.split=last", "other selection: first: test; other: last"),
        ("selection.metric=map_at_r", "other selection metric: first: recall_at_1; other: map_at_r"),
        ("training.epochs=3", "other epochs: first: 2; other: 3"),
        ("selection.split=validation", "other held-out classes: first: none; other: fraction 0.2, seed 0"),
    ],
)
def test_what_differs_is_said(tmp_path: Path, override: str, label: str) -> None:
    assert any(line.startswith(label) for line in told(tmp_path, override))


def test_other_weights_are_said(tmp_path: Path) -> None:
    assert "other weights: first: none; other: resnet50 0676ba61" in told(tmp_path, weights="resnet50 0676ba61")


def test_selection_on_test_is_said_of_whom(tmp_path: Path) -> None:
    both, one = told(tmp_path, "optimizer.lr=0.01"), told(tmp_path / "more", "selection.split=last")
    assert any(line.startswith("selected on test: the epochs of first and other are the best") for line in both)
    assert any(line.startswith("selected on test: the epochs of first are the best") for line in one)


def test_packs_of_unequal_size_meet_at_equal_sizes(tmp_path: Path) -> None:
    five, four = source(tmp_path, "five", "seeds=[0, 1, 2, 3, 4]"), source(tmp_path, "four", "seeds=[0, 1, 2, 3]")
    found = compare([five, four])
    assert {(point.size, point.seeds) for point in found.sizes} == {(size, (0, 1, 2, 3)) for size in (1, 2, 3, 4)}
    assert {test.size for test in found.queries} == {1, 4}
    label = "ensemble of 4 (width 4 x 8) against ensemble of 5 (width 5 x 8): four and five are compared as packs of 1"
    assert any(line.startswith(label) for line in found.labels)
    assert [entry.standing for entry in found.entries] == ["ensemble of 5", "ensemble of 4"]
    assert found.baseline.concat_dim == 40
