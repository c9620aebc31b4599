from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from sfora_ray.data.base import ImageDataset
from sfora_ray.data.coarse import CoarseCsv
from sfora_ray.data.image_folder import ImageFolderOptions
from sfora_ray.errors import DataError
from tests.data.pictures import write_folder
from tests.shared import SHARED, needs_shared

ROWS = "folder,coarse_class,images\na,Apple,2\nb,Pear,2\nc,Apple,2\nd,Milk,2\nz,Beer,9\n"


def load(root: Path, text: str, **coarse: object) -> ImageDataset:
    write_folder(root, dict.fromkeys("abcd", 2))
    (root / "classes.csv").write_text(text)
    return ImageFolderOptions.model_validate({"root": root, "coarse": coarse}).load(root)


def test_a_file_names_the_coarse_classes(tmp_path: Path) -> None:
    dataset = load(tmp_path, ROWS)
    train, test = dataset.train, dataset.test
    assert train.coarse_labels is not None
    assert test.coarse_labels is not None
    assert [train.coarse_names[label] for label in train.coarse_labels] == ["Apple"] * 4
    assert [test.coarse_names[label] for label in test.coarse_labels] == ["Pear", "Pear", "Milk", "Milk"]
    assert train.coarse_names == test.coarse_names


def test_other_columns_may_be_named(tmp_path: Path) -> None:
    text = ROWS.replace("folder,coarse_class", "name,kind")
    assert load(tmp_path, text, class_column="name", coarse_column="kind").train.coarse_labels is not None


def test_without_the_option_there_are_none(tmp_path: Path) -> None:
    write_folder(tmp_path, dict.fromkeys("abcd", 2))
    dataset = ImageFolderOptions(root=tmp_path).load(tmp_path)
    assert (dataset.train.coarse_labels, dataset.test.coarse_names) == (None, ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ROWS.replace("b,Pear,2\n", ""), r"every class folder needs a row, got none for 1 \(b\)"),
        (ROWS + "b,Plum,2\n", "row 7: a class is of one coarse class, got 'b' in Pear and Plum"),
        (ROWS.replace("Pear", ""), "row 3: folder and coarse_class must be filled in"),
    ],
)
def test_bad_files_are_refused_by_row(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=rf"classes\.csv.*{words}"):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "missing", "columns", "keys"),
    [
        (
            ROWS.replace("coarse_class", "kind"),
            "'coarse_class'",
            "'folder', 'kind', 'images'",
            "`data.coarse.coarse_column`",
        ),
        (ROWS.replace("folder", "name"), "'folder'", "'name', 'coarse_class', 'images'", "`data.coarse.class_column`"),
        (
            "name;kind\na;Apple\n",
            "'folder' and 'coarse_class'",
            "'name;kind'",
            "`data.coarse.class_column` and `data.coarse.coarse_column`",
        ),
        (
            "",
            "'folder' and 'coarse_class'",
            "no column",
            "`data.coarse.class_column` and `data.coarse.coarse_column`",
        ),
    ],
)
def test_a_header_without_the_columns_is_refused_with_those_it_has(
    tmp_path: Path, text: str, missing: str, columns: str, keys: str
) -> None:
    with pytest.raises(DataError) as caught:
        load(tmp_path, text)
    place = tmp_path / "classes.csv"
    assert (
        str(caught.value) == f"{place}: the header must have {missing}, got {columns}. Set {keys} to what the file has."
    )


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"other\.csv: not a readable CSV file"):
        load(tmp_path, ROWS, path="other.csv")


@pytest.mark.parametrize("path", ["../classes.csv", "/etc/passwd"])
def test_the_file_lies_below_the_root(path: str) -> None:
    with pytest.raises(ValidationError, match="below `root`"):
        CoarseCsv(path=Path(path))


@needs_shared
def test_the_grocery_store_has_43_coarse_classes() -> None:
    options = {"root": SHARED / "data" / "grocery", "coarse": {}}
    dataset = ImageFolderOptions.model_validate(options).load(Path())
    tables = (dataset.train, dataset.test)
    assert sum(len(table.class_names) for table in tables) == 81
    assert len(dataset.train.coarse_names) == 43
    used = [set(np.unique(table.coarse_labels)) for table in tables if table.coarse_labels is not None]
    assert len(used[0] | used[1]) == 43
