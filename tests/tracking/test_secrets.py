"""No parameter, tag, artifact or message holds a secret of the environment."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from mlflow import MlflowClient

from sfora_ray.errors import TrackerError
from sfora_ray.pack.following import _Outage
from sfora_ray.pack.mirror import Mirror
from sfora_ray.tracking.mlflow import MlflowOptions
from sfora_ray.tracking.secrets import secrets_in, without_secrets
from sfora_ray.training.boundary import failed
from tests.tracking.packs import paper_pack, shown

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIA-of-a-test",
    "AWS_SECRET_ACCESS_KEY": "wJalr/of+a+test",
    "AWS_SESSION_TOKEN": "session-of-a-test",
    "MLFLOW_TRACKING_PASSWORD": "mlflow-pass-word",
    "MLFLOW_TRACKING_TOKEN": "mlflow-bearer",
    "PGPASSWORD": "postgres-pass-word",
    "RAY_AUTH_TOKEN": "ray-bearer-0123456789",
}


@pytest.fixture
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def test_what_is_named_like_a_secret_is_one() -> None:
    others = {"TOKENIZERS_PARALLELISM": "false", "AWS_REGION": "eu-central-1", "HOME": "/root", "PGPASSWORD": "abc"}
    assert set(secrets_in({**others, **SECRETS})) == set(SECRETS.values()) | {"postgres-pass-word"}


def test_the_longer_secret_is_hidden_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "abcd")
    monkeypatch.setenv("B_TOKEN", "abcdefgh")
    assert without_secrets("x abcdefgh y abcd") == "x *** y ***"


@pytest.mark.usefixtures("_secrets")
def test_nothing_that_is_told_holds_a_secret(tmp_path: Path) -> None:
    everything, uri = " ".join(SECRETS.values()), f"sqlite:///{tmp_path}/mlflow.db"
    run = paper_pack(tmp_path, uri, "secret", f"data.root='/photos/{everything}'", f"cache_dir='/cache/{everything}'")
    (first, _) = run.specs()
    reason = f"PUT https://key:{SECRETS['PGPASSWORD']}@storage/bucket failed: {everything}"
    run.member(first).write_result(failed(first, run.member(first), "storage", reason))
    run.report_path.mkdir()
    (run.report_path / "index.html").write_text(f"<p>{reason}</p>")
    run.summary_path.write_text("{}")
    mirror = Mirror(run, run.manifest().config.tracking.build())
    mirror.open()
    mirror.tell_members()
    mirror.tell_files()
    mirror.close("FAILED", reason)
    client = MlflowClient(uri)
    runs = {part: found for part, (found,) in shown(uri, "secret").items()}
    told = [f"{one.data.params} {one.data.tags} {one.info.run_name}" for one in runs.values()]
    copy = Path(client.download_artifacts(runs["pack"].info.run_id, "", str(_made(tmp_path / "copy"))))
    files = {path.name: path.read_text() for path in copy.rglob("*") if path.is_file()}
    assert {"manifest.json", "index.html"} <= set(files)
    for secret in SECRETS.values():
        assert secret in run.manifest_path.read_text()  # which is told as a file, and was not as it lies there
        assert not any(secret in text for text in (*told, *files.values()))
    assert runs["m00"].data.tags["sfora.reason"].startswith("PUT https://key:***@storage/bucket failed: ***")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.usefixtures("_secrets")
def test_no_message_holds_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    secret = SECRETS["MLFLOW_TRACKING_TOKEN"]
    with pytest.raises(TrackerError) as caught:
        MlflowOptions(uri=f"http://127.0.0.1:9/{secret}").build().check()
    assert secret not in str(caught.value)
    with caplog.at_level(logging.WARNING):
        _Outage().note(OSError(f"Authorization: Bearer {secret}"))
    assert "Authorization" in caplog.text
    assert secret not in caplog.text
