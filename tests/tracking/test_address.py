import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from sfora_ray.errors import TrackerError
from sfora_ray.tracking import TRACKERS, MetricPoint, MlflowOptions, NoTrackingOptions
from sfora_ray.tracking.address import absolute, artifact_folder, conceal, sqlite_file

SECRET = "s3cr?t/p@ss"


@pytest.mark.parametrize("uri", ["file:./mlruns", "file:///runs", "./mlruns", "", "databricks", "ftp://x/y"])
def test_folders_and_strange_schemes_are_refused(uri: str) -> None:
    with pytest.raises(ValidationError, match=r"must be a server .* not a folder"):
        MlflowOptions(uri=uri)


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "http://", "postgresql:///mlflow"])
def test_addresses_that_name_nothing_are_refused(uri: str) -> None:
    with pytest.raises(ValidationError, match="must name"):
        MlflowOptions(uri=uri)


@pytest.mark.parametrize(
    "uri",
    ["sqlite:///m.db", "sqlite:////runs/m.db", "http://h:5000", "https://h", "postgresql+psycopg2://u@h/m"],
)
def test_servers_and_databases_are_accepted(uri: str) -> None:
    assert MlflowOptions(uri=uri).uri == uri


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"postgresql://me:{SECRET}@db/mlflow", "postgresql://me:***@db/mlflow"),
        (f"cannot reach https://me:{SECRET}@host:5000/api", "cannot reach https://me:***@host:5000/api"),
        (f"login with {SECRET} failed", "login with *** failed"),
        (
            "see http://other:word@host and http://plain:5000/x@y",
            "see http://other:***@host and http://plain:5000/x@y",
        ),
        ("mssql://h/m?user=a&password=abc", "mssql://h/m?user=a&password=***"),
    ],
)
def test_no_password_is_shown(text: str, shown: str) -> None:
    assert conceal(text, f"postgresql://me:{SECRET}@db/mlflow") == shown


def test_an_encoded_password_is_hidden_in_both_spellings() -> None:
    assert conceal("p%40ss and p@ss", "postgresql://me:p%40ss@db/m") == "*** and ***"


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(TrackerError, match=r"uri: must not hold a password, .* got '.*me:\*\*\*@db.*'\. Set") as caught:
        MlflowOptions(uri=f"postgresql://me:{SECRET}@db/mlflow")
    assert SECRET not in str(caught.value)


def test_sqlite_addresses_do_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("sqlite:///deep/m.db") == f"sqlite:///{tmp_path}/deep/m.db"
    assert absolute(f"sqlite:///{tmp_path}/m.db?timeout=9") == f"sqlite:///{tmp_path}/m.db?timeout=9"
    assert sqlite_file("http://h") is None
    assert absolute("http://h") == "http://h"
    assert artifact_folder("sqlite:///deep/m.db", "my pack/1") == (tmp_path / "deep/mlruns/my-pack-1").as_uri()
    assert artifact_folder("http://h", "x") is None


def test_the_table_names_every_tracker() -> None:
    assert {name: options().model_dump()["name"] for name, options in TRACKERS.items()} == {
        "mlflow": "mlflow",
        "none": "none",
    }


def test_the_empty_tracker_takes_everything(tmp_path: Path) -> None:
    tracker = NoTrackingOptions().build()
    tracker.check()
    assert tracker.open_run("pack/m00", "m00", parent="pack", tags={"a": "b"}) == "pack/m00"
    tracker.log_params("r", {"a": "b"})
    tracker.set_tags("r", {"a": "b"})
    tracker.log_metrics("r", [MetricPoint("loss", 1.0, 0, 0)])
    tracker.log_dataset("r", "glyphs", "d", "train")
    tracker.log_file("r", tmp_path / "absent")
    tracker.close_run("r", "FAILED")


def test_neither_the_room_nor_its_options_load_mlflow() -> None:
    code = (
        "import sys; import sfora_ray.tracking as t; t.MlflowOptions(); t.NoTrackingOptions().build();"
        "sys.exit(any(m.split('.')[0] == 'mlflow' for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
