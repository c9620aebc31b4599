"""Against the values of the published programs."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfora_ray.arrays import Float, l2_normalize
from sfora_ray.folds import (
    ConcatOptions,
    FittedFold,
    GpaOptions,
    GpaTransductiveOptions,
    InductiveFold,
    MeanOptions,
    Moments,
    PcaOptions,
    PcaTransductiveOptions,
    ProcrustesOptions,
    UncentredOptions,
    published_rotations,
)
from tests.folds.packs import cosines, load

CASES = ("c1_reflect_noisy", "c3_low_rank_train")


@pytest.fixture(scope="module")
def arrays() -> dict[str, NDArray[Any]]:
    return load()


def _check(folded: Float, expected: NDArray[Any], atol: float = 1e-6) -> None:
    rows, columns = expected.shape
    np.testing.assert_allclose(cosines(folded)[:rows, :columns], expected, atol=atol)


def _inputs(arrays: dict[str, NDArray[Any]], case: str) -> tuple[list[Float], list[Float], Moments, Moments]:
    train, test = list(arrays[f"{case}/in/train"]), list(arrays[f"{case}/in/test"])
    labels = arrays[f"{case}/in/y_train"], arrays[f"{case}/in/y_test"]
    return train, test, Moments.of(train, labels[0]), Moments.of(test, labels[1])


TRAIN_FITTED: list[tuple[InductiveFold, str, tuple[str, ...]]] = [
    (ConcatOptions(), "concat", CASES),
    (MeanOptions(), "naive_mean", CASES),
    (UncentredOptions(dim=8), "svd_train_uncentred_8", CASES[1:]),
    (UncentredOptions(), "svd_train_uncentred_16", CASES),
    (UncentredOptions(dim=30), "svd_train_uncentred_30", CASES[1:]),
    (UncentredOptions(dim=40), "svd_train_uncentred_40", CASES[:1]),
    (PcaOptions(dim=4), "pca_train_4", CASES[:1]),
    (PcaOptions(dim=8), "pca_train_8", CASES[1:]),
    (PcaOptions(), "pca_train_16", CASES),
    (PcaOptions(dim=40), "pca_train_40", CASES[:1]),
]


@pytest.mark.parametrize(
    ("options", "key", "case"),
    [(options, key, case) for options, key, cases in TRAIN_FITTED for case in cases],
)
def test_train_fitted_folds(arrays: dict[str, NDArray[Any]], options: InductiveFold, key: str, case: str) -> None:
    _, test, moments, _ = _inputs(arrays, case)
    _check(options.fit(moments).transform(test), arrays[f"{case}/out/cos_{key}"], atol=2e-6)


@pytest.mark.parametrize("case", CASES)
def test_folds_fitted_on_what_is_scored(arrays: dict[str, NDArray[Any]], case: str) -> None:
    _, test, _, scored = _inputs(arrays, case)
    _check(ProcrustesOptions().fit(scored).transform(test), arrays[f"{case}/out/cos_procrustes_ref0"])
    found = PcaTransductiveOptions(dim=16).fit_transductive(scored)
    assert found.fitted_on == "test"
    _check(found.transform(test), arrays[f"{case}/out/cos_pca_test_16"], atol=2e-6)


@pytest.mark.parametrize("case", CASES)
def test_published_gpa_rotations_to_the_last_digit(arrays: dict[str, NDArray[Any]], case: str) -> None:
    train, test, _, _ = _inputs(arrays, case)
    rotations = published_rotations(train, "inductive")
    np.testing.assert_allclose(rotations, arrays[f"{case}/out/rotations"], atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(rotations), 1)
    for iterations, key in ((5, "gpa_transductive_it5"), (20, "gpa_transductive")):
        turned = published_rotations(test, "transductive", iterations)
        aligned = [l2_normalize(block) @ turn for block, turn in zip(test, turned, strict=True)]
        _check(np.mean(aligned, axis=0), arrays[f"{case}/out/cos_{key}"], atol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_published_gpa_as_an_option(arrays: dict[str, NDArray[Any]], case: str) -> None:
    train, test, _, _ = _inputs(arrays, case)
    labels = arrays[f"{case}/in/y_train"], arrays[f"{case}/in/y_test"]
    inductive: FittedFold = GpaOptions(reference="inductive").fit_rows(train, labels[0])
    _check(inductive.transform(test), arrays[f"{case}/out/cos_gpa_inductive"])
    transductive = GpaTransductiveOptions(reference="transductive").fit_rows_transductive(test, labels[1])
    _check(transductive.transform(test), arrays[f"{case}/out/cos_gpa_transductive"])


def test_thirty_rows_have_no_more_axes(arrays: dict[str, NDArray[Any]]) -> None:
    _, test, moments, _ = _inputs(arrays, "c3_low_rank_train")
    fitted = UncentredOptions(dim=64).fit(moments)
    assert fitted.dim == 30
    _check(fitted.transform(test), arrays["c3_low_rank_train/out/cos_svd_train_uncentred_30"])
    assert PcaOptions(dim=64).fit(moments).dim == 29
