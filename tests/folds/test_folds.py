"""Against row-wise procedures written out, and what must hold for every fold."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from sfora_ray.arrays import Float, Int64, l2_normalize
from sfora_ray.errors import ConfigError, DataError
from sfora_ray.folds import (
    FOLDS,
    FittedFold,
    FoldOptions,
    GpaOptions,
    InductiveFold,
    Moments,
    ProcrustesOptions,
    RandomOptions,
    TransductiveFold,
    WccnOptions,
    parse_fold,
)
from tests.folds.packs import cosines, orthogonal, pack

INDUCTIVE = (
    "concat",
    "mean",
    "procrustes",
    "gpa",
    "pca",
    "uncentred",
    "wccn",
    "random",
    "gpa+wccn",
    "pca:5+wccn",
)
EVERY = (*INDUCTIVE, "gpa_transductive", "pca_transductive")


def _fit(text: str, moments: Moments) -> FittedFold:
    options = parse_fold(text)
    return options.fit(moments) if isinstance(options, InductiveFold) else options.fit_transductive(moments)


def _gpa_by_rows(blocks: list[Float]) -> Float:
    consensus = blocks[0]
    for _ in range(200):
        turned = [block @ orthogonal_procrustes(block, consensus)[0] for block in blocks]
        consensus = np.mean(turned, axis=0)
    return consensus


def _procrustes_by_rows(blocks: list[Float]) -> Float:
    return np.asarray(np.mean([block @ orthogonal_procrustes(block, blocks[0])[0] for block in blocks], axis=0))


def _wccn_by_rows(blocks: list[Float], labels: Int64, dim: int) -> Float:
    rows = np.concatenate(blocks, 1)
    centred = np.concatenate([rows[labels == c] - rows[labels == c].mean(0) for c in np.unique(labels)])
    within = centred.T @ centred / len(rows)
    shrunk = within + 3 * np.trace(within) / rows.shape[1] * np.eye(rows.shape[1])
    whitened = rows @ np.linalg.cholesky(np.linalg.inv(shrunk))
    return np.asarray(whitened @ np.linalg.svd(whitened)[2][:dim].T)


@pytest.mark.parametrize(("text", "slow"), [("gpa", _gpa_by_rows), ("procrustes", _procrustes_by_rows)])
def test_rotations_equal_the_row_wise_procedure(text: str, slow: Callable[[list[Float]], Float]) -> None:
    blocks, labels = pack()
    found = _fit(text, Moments.of(blocks, labels)).transform(blocks)
    np.testing.assert_allclose(found, l2_normalize(slow(blocks)), atol=2e-6)


@pytest.mark.parametrize("members", [1, 4])
@pytest.mark.parametrize("dim", [None, 3])
def test_wccn_equals_the_row_wise_procedure(members: int, dim: int | None) -> None:
    blocks, labels = pack(members=members)
    found = WccnOptions(dim=dim).fit(Moments.of(blocks, labels))
    assert found.dim == (dim or 8)
    expected = _wccn_by_rows(blocks, labels, dim or 8)
    np.testing.assert_allclose(cosines(found.transform(blocks)), cosines(expected), atol=2e-5)


def test_aligned_then_whitened_is_wccn_of_the_consensus() -> None:
    blocks, labels = pack()
    found = _fit("gpa+wccn:5", Moments.of(blocks, labels))
    expected = _wccn_by_rows([_gpa_by_rows(blocks)], labels, 5)
    np.testing.assert_allclose(cosines(found.transform(blocks)), cosines(expected), atol=2e-5)
    assert (found.name, found.fitted_on, found.dim) == ("gpa+wccn-5", "train", 5)


@pytest.mark.parametrize("text", ["uncentred:12+pca:4", "pca:12+pca:4", "pca:12+uncentred:4"])
def test_means_of_a_chain_become_one(text: str) -> None:
    blocks, labels = pack()
    rows = np.concatenate(blocks, 1)
    for step in text.split("+"):
        name, dim = step.split(":")
        centred = rows - rows.mean(0) if name == "pca" else rows
        rows = centred @ np.linalg.svd(centred, full_matrices=False)[2][: int(dim)].T
    found = _fit(text, Moments.of(blocks, labels)).transform(blocks)
    np.testing.assert_allclose(cosines(found), cosines(rows), atol=2e-4)


@pytest.mark.parametrize("text", ["procrustes", "gpa", "gpa:start=medoid", "gpa_transductive"])
def test_a_known_rotation_is_recovered_mirrored_or_not(text: str) -> None:
    rng = np.random.default_rng(7)
    truth = l2_normalize(rng.normal(size=(60, 6)))
    turns = [np.eye(6), orthogonal(rng, 6), np.diag([1, 1, 1, 1, 1, -1.0]), -np.eye(6)]
    blocks = [truth @ turn for turn in turns]
    fitted = _fit(text, Moments.of(blocks, np.arange(60) % 5))
    np.testing.assert_allclose(cosines(fitted.transform(blocks)), cosines(truth), atol=1e-6)
    for number, turn in enumerate(turns):
        recovered = 4 * fitted.matrix[6 * number : 6 * (number + 1)]
        np.testing.assert_allclose(turn @ recovered, 4 * fitted.matrix[:6], atol=1e-5)


def test_medoid_is_the_member_nearest_to_all() -> None:
    blocks, labels = pack(noise=0.9)
    blocks[2] = l2_normalize(np.sum([b @ orthogonal_procrustes(b, blocks[0])[0] for b in blocks], axis=0))
    moments = Moments.of(blocks, labels)
    first, medoid = GpaOptions(max_iterations=1), GpaOptions(max_iterations=1, start="medoid")
    expected = ProcrustesOptions(member=2).fit(moments).matrix
    np.testing.assert_allclose(medoid.fit(moments).matrix, expected, atol=1e-7)
    assert np.abs(first.fit(moments).matrix - expected).max() > 0.01


@pytest.mark.parametrize("text", ["concat", "gpa", "pca", "uncentred", "wccn", "gpa+wccn"])
def test_member_order_does_not_matter_up_to_a_rotation(text: str) -> None:
    blocks, labels = pack()
    swapped = [blocks[m] for m in (3, 1, 0, 2)]
    found = [_fit(text, Moments.of(b, labels)).transform(b) for b in (blocks, swapped)]
    np.testing.assert_allclose(cosines(found[0]), cosines(found[1]), atol=1e-4)


@pytest.mark.parametrize("text", EVERY)
def test_every_fold_gives_unit_rows_in_chunks_and_survives_a_file(text: str, tmp_path: Any) -> None:
    blocks, labels = pack()
    fitted = _fit(text, Moments.of(blocks, labels))
    folded = fitted.transform(blocks)
    assert folded.dtype == np.float32
    assert folded.shape == (150, fitted.dim)
    np.testing.assert_allclose(np.linalg.norm(folded, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(fitted.transform(blocks, chunk_rows=11), folded, atol=1e-5)
    fitted.save(tmp_path / "fold.safetensors")
    loaded = FittedFold.load(tmp_path / "fold.safetensors")
    np.testing.assert_array_equal(loaded.transform(blocks), folded)
    assert (loaded.name, loaded.fitted_on, loaded.member_dim) == (fitted.name, fitted.fitted_on, 8)


@pytest.mark.parametrize("content", [b"", b"\x00" * 7, None])
def test_a_damaged_file_is_one_clear_error(content: bytes | None, tmp_path: Any) -> None:
    blocks, labels = pack()
    path = tmp_path / "fold.safetensors"
    _fit("pca", Moments.of(blocks, labels)).save(path)
    path.write_bytes(path.read_bytes()[:-9] if content is None else content)
    with pytest.raises(DataError, match="not a readable fold"):
        FittedFold.load(path)
    with pytest.raises(DataError, match="not a readable fold"):
        FittedFold.load(tmp_path / "absent")


def test_other_members_are_refused() -> None:
    blocks, labels = pack()
    fitted = _fit("gpa", Moments.of(blocks, labels))
    for wrong in (blocks[:3], [block[:, :5] for block in blocks], []):
        with pytest.raises(DataError, match="fitted for 4 members of width 8"):
            fitted.transform(wrong)


def test_kinds_are_told_apart() -> None:
    assert {name for name, kind in FOLDS.items() if issubclass(kind, TransductiveFold)} == {
        "gpa_transductive",
        "pca_transductive",
    }
    for name, kind in FOLDS.items():
        assert issubclass(kind, FoldOptions)
        assert kind.model_fields["name"].default == name
        assert hasattr(kind, "fit") != hasattr(kind, "fit_transductive")


def test_what_cannot_be_fitted() -> None:
    blocks, labels = pack()
    moments = Moments.of(blocks, labels)
    with pytest.raises(ConfigError, match=r"members 0\.\.3, got 4"):
        ProcrustesOptions(member=4).fit(moments)
    with pytest.raises(ConfigError, match="needs rows"):
        GpaOptions(reference="inductive").fit(moments)
    with pytest.raises(ConfigError, match="needs rows"):
        _fit("gpa:reference=inductive+wccn", moments)
    with pytest.raises(DataError, match="rows of a class must differ"):
        WccnOptions().fit(Moments.of(blocks, np.arange(150)))


def test_random_axes_are_orthonormal_and_seeded() -> None:
    blocks, labels = pack()
    moments = Moments.of(blocks, labels)
    first = RandomOptions(dim=5).fit(moments).matrix
    np.testing.assert_allclose(first.T @ first, np.eye(5), atol=1e-6)
    np.testing.assert_array_equal(first, RandomOptions(dim=5).fit(moments).matrix)
    assert np.abs(first - RandomOptions(dim=5, seed=1).fit(moments).matrix).max() > 0.01
