"""What every entry of the fold table owes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfora_ray.errors import DataError
from sfora_ray.folds import (
    FOLDS,
    ComposedOptions,
    FittedFold,
    FoldOptions,
    InductiveFold,
    Moments,
    TransductiveFold,
    parse_fold,
)
from tests.pack.blocks import pack_blocks

PACK = pack_blocks(3)
MOMENTS = Moments.of(PACK.train.blocks, PACK.train.labels)


def options_of(name: str) -> FoldOptions:
    return parse_fold("gpa+wccn") if FOLDS[name] is ComposedOptions else FOLDS[name]()


def fit(options: FoldOptions, moments: Moments = MOMENTS) -> FittedFold:
    if isinstance(options, TransductiveFold):
        return options.fit_transductive(moments)
    assert isinstance(options, InductiveFold)
    return options.fit(moments)


@pytest.mark.parametrize("name", FOLDS)
def test_it_knows_its_name_and_is_of_one_kind(name: str) -> None:
    assert FOLDS[name].model_fields["name"].default == name
    assert issubclass(FOLDS[name], InductiveFold) != issubclass(FOLDS[name], TransductiveFold)


@pytest.mark.parametrize("name", FOLDS)
def test_its_canonical_name_is_read_back_and_is_a_file_name(name: str) -> None:
    options = options_of(name)
    assert parse_fold(options.canonical_name) == options
    assert "/" not in options.canonical_name
    assert FOLDS[name].model_validate_json(options.model_dump_json()) == options


@pytest.mark.parametrize("name", FOLDS)
def test_its_map_makes_unit_rows_of_its_width_and_says_what_it_was_fitted_on(name: str) -> None:
    fitted = fit(options_of(name))
    rows = fitted.transform(PACK.test.blocks)
    assert rows.shape == (len(PACK.test.ids), fitted.dim)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert (fitted.num_members, fitted.member_dim) == (3, 4)
    assert (fitted.fitted_on == "test") == isinstance(options_of(name), TransductiveFold)


@pytest.mark.parametrize("name", FOLDS)
def test_its_file_gives_the_same_map(name: str, tmp_path: Path) -> None:
    fitted = fit(options_of(name))
    fitted.save(tmp_path / "fold.safetensors")
    again = FittedFold.load(tmp_path / "fold.safetensors")
    assert np.array_equal(again.transform(PACK.test.blocks), fitted.transform(PACK.test.blocks))
    assert (again.name, again.fitted_on) == (fitted.name, fitted.fitted_on)


@pytest.mark.parametrize("name", FOLDS)
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    order = np.random.default_rng(0).permutation(len(PACK.train.labels))
    shuffled = Moments.of([block[order] for block in PACK.train.blocks], PACK.train.labels[order])
    first, second = (fit(options_of(name), moments).transform(PACK.test.blocks) for moments in (MOMENTS, shuffled))
    np.testing.assert_allclose(first @ first.T, second @ second.T, atol=1e-4)


@pytest.mark.parametrize("name", FOLDS)
def test_it_refuses_other_members(name: str) -> None:
    with pytest.raises(DataError, match="fitted for 3 members of width 4"):
        fit(options_of(name)).transform(PACK.test.blocks[:2])
