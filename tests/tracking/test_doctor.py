from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import ViewType

from sfora_ray.errors import TrackerError
from sfora_ray.tracking.doctor import prove_artifacts


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_byte_goes_to_a_server_and_back_and_nothing_stays(server: str) -> None:
    facts = prove_artifacts(server, "doctors")
    again = prove_artifacts(server, "doctors")
    assert facts.version.startswith("3.")
    assert facts.artifacts.startswith("mlflow-artifacts:/")
    assert (facts.made_experiment, again.made_experiment) == (True, False)
    client = MlflowClient(tracking_uri=server)
    experiment = client.get_experiment_by_name("doctors")
    assert experiment is not None
    assert client.search_runs([experiment.experiment_id]) == []
    deleted = client.search_runs([experiment.experiment_id], run_view_type=ViewType.DELETED_ONLY)
    assert [run.info.status for run in deleted] == ["FINISHED"] * 2
    assert all(client.list_artifacts(run.info.run_id) == [] for run in deleted)


@pytest.mark.usefixtures("mlflow_store")
def test_a_byte_goes_beside_a_database_and_back(tmp_path: Path) -> None:
    facts = prove_artifacts(f"sqlite:///{tmp_path}/mlflow.db", "doctors")
    assert facts.version == ""
    assert facts.artifacts == f"file://{tmp_path}/mlruns/doctors"
    assert facts.made_experiment
    assert files_below(tmp_path / "mlruns") == []


def test_files_that_cannot_be_stored_are_told_and_no_run_is_left_running(server: str, tmp_path: Path) -> None:
    """A server that hands out a folder of its own machine: here its clients cannot write there."""
    (tmp_path / "file").write_text("")
    client = MlflowClient(tracking_uri=server)
    experiment = client.create_experiment("elsewhere", artifact_location=f"file://{tmp_path}/file/artifacts")
    with pytest.raises(TrackerError, match=r"refused the file 'one-byte\.txt'"):
        prove_artifacts(server, "elsewhere")
    assert client.search_runs([experiment]) == []


def test_a_byte_that_comes_back_changed_is_told(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = tmp_path / "fetched"
    fetched.write_bytes(b"<html>")
    monkeypatch.setattr(MlflowClient, "download_artifacts", lambda *_: str(fetched))
    with pytest.raises(TrackerError, match="got back b'<html>'"):
        prove_artifacts(server, "doctors")
