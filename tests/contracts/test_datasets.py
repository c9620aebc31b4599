"""What every entry of the data table owes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfora_ray.data import DATASETS
from sfora_ray.errors import DataError

WITH_ROOT = [name for name, kind in DATASETS.items() if "root" in kind.model_fields]


@pytest.mark.parametrize("name", DATASETS)
def test_its_options_know_the_name_it_is_listed_under(name: str) -> None:
    assert DATASETS[name].model_fields["name"].default == name


@pytest.mark.parametrize("name", DATASETS)
def test_its_options_survive_json(name: str) -> None:
    options = DATASETS[name].model_validate({"root": "somewhere"} if name in WITH_ROOT else {})
    assert DATASETS[name].model_validate_json(options.model_dump_json()) == options


@pytest.mark.parametrize("name", DATASETS)
def test_it_has_a_card(name: str) -> None:
    card = DATASETS[name].card
    assert all((card.title, card.paper, card.checked, card.differences))
    assert [other for other in DATASETS if DATASETS[other].card == card] == [name]


@pytest.mark.parametrize("name", WITH_ROOT)
def test_an_absent_folder_is_refused_by_its_path_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    options = DATASETS[name].model_validate({"root": tmp_path / "nowhere"})
    with pytest.raises(DataError) as caught:
        options.load(tmp_path)
    assert str(tmp_path / "nowhere") in str(caught.value)
    assert caught.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", DATASETS)
def test_published_counts_have_two_splits(name: str) -> None:
    counts = DATASETS[name].model_validate({"root": "x"} if name in WITH_ROOT else {}).published_counts()
    if counts is None:
        return
    assert counts.train_images > counts.train_classes > 1
    assert counts.test_images > counts.test_classes > 1
    assert counts.channels in (1, 3)
    assert counts.coarse_classes is None or 1 < counts.coarse_classes < counts.test_classes
