"""The keeper closes the runs of a driver that was killed, and of no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from sfora_ray.pack import keeper as keeper_module
from sfora_ray.pack.keeper import LOG_NAME, close_when_free, kept
from sfora_ray.pack.lock import LOCK_NAME, Holder, run_lock
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.storage import ObjectStore, WorkingCopy
from sfora_ray.storage.lease import LEASE_NAME, Lease
from sfora_ray.tracking.mlflow_client import MlflowTracker
from tests.storage.server import BUCKET, s3_server
from tests.tiny import tiny_config
from tests.tracking.packs import paper_pack, shown

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

DRIVER = """
import sys, time
from pathlib import Path
from sfora_ray.pack.keeper import kept
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
run = RunFolder(Path(sys.argv[1]))
with run_lock(run.path), kept(run) as keeper:
    Mirror(run, run.manifest().config.tracking.build()).open()
    print(keeper.process.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('kept')}/mlflow.db"


def statuses(uri: str, experiment: str) -> set[str]:
    return {runs[0].info.status for runs in shown(uri, experiment).values()}


def test_a_killed_driver_leaves_no_run_running(uri: str, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, uri, "killed")
    command = [sys.executable, "-c", DRIVER, str(run.path)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert driver.stdout is not None
        keeper = int(driver.stdout.readline())
        modules = Path(f"/proc/{keeper}/maps")
        assert not modules.exists() or "torch" not in modules.read_text()
        assert statuses(uri, "killed") == {"RUNNING"}
        os.kill(keeper, signal.SIGTERM)  # the end of a job reaches the keeper too
    finally:
        driver.kill()
        driver.communicate()
    end = time.monotonic() + 120
    while statuses(uri, "killed") != {"KILLED"}:
        assert time.monotonic() < end, (run.path / LOG_NAME).read_text()
        time.sleep(0.5)


def test_a_dismissed_keeper_is_gone_at_once_and_closes_nothing(uri: str, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, uri, "dismissed")
    Mirror(run, run.manifest().config.tracking.build()).open()
    with kept(run) as keeper:
        keeper.dismiss()
    assert keeper.process is not None
    assert keeper.process.returncode == 0
    assert statuses(uri, "dismissed") == {"RUNNING"}
    assert not (run.path / LOG_NAME).exists()


def test_a_pack_that_was_taken_on_is_left_alone(uri: str, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, uri, "taken")
    Mirror(run, run.manifest().config.tracking.build()).open()
    with run_lock(run.path):
        close_when_free(run.path, driver=os.getpid() + 1)
    assert statuses(uri, "taken") == {"RUNNING"}
    close_when_free(run.path, driver=os.getpid() + 1)
    assert statuses(uri, "taken") == {"KILLED"}


def opened(run: RunFolder) -> RunFolder:
    Mirror(run, run.manifest().config.tracking.build()).open()
    return run


def test_a_process_of_another_machine_is_not_the_driver_though_it_has_its_number(uri: str, tmp_path: Path) -> None:
    run = opened(paper_pack(tmp_path, uri, "host"))
    with run_lock(run.path):
        other = Holder(host="elsewhere", pid=os.getpid(), since="now")
        (run.path / LOCK_NAME).write_text(other.model_dump_json())
        close_when_free(run.path, driver=os.getpid())
    assert statuses(uri, "host") == {"RUNNING"}


def test_a_pack_that_is_taken_on_while_the_tracker_is_asked_is_left_alone(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = opened(paper_pack(tmp_path, uri, "between"))
    check = MlflowTracker.check
    with ExitStack() as resumed:

        def check_slowly(tracker: MlflowTracker) -> None:
            check(tracker)
            resumed.enter_context(run_lock(run.path, 0))

        monkeypatch.setattr(MlflowTracker, "check", check_slowly)
        monkeypatch.setattr(keeper_module, "_SECONDS_BETWEEN_TRIES", 0.0)
        close_when_free(run.path, driver=os.getpid() + 1)
    assert statuses(uri, "between") == {"RUNNING"}


def test_a_pack_in_a_store_is_left_alone_while_another_machine_has_the_lease(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = opened(paper_pack(tmp_path, uri, "leased"))
    with s3_server() as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        store = ObjectStore(f"s3://{BUCKET}/leased", pauses_seconds=(0.01,), silence_seconds=2)
        WorkingCopy(run.path, store).adopt()
        lease = Lease(token="theirs", host="elsewhere", boot="another", pid=os.getpid(), time=time.time())
        store.put(LEASE_NAME, lease.model_dump_json().encode())
        close_when_free(run.path, driver=os.getpid())
        assert statuses(uri, "leased") == {"RUNNING"}
        store.delete(LEASE_NAME)
        close_when_free(run.path, driver=os.getpid())
        assert statuses(uri, "leased") == {"KILLED"}


def test_a_pack_without_a_tracker_has_no_keeper(tmp_path: Path) -> None:
    run = RunFolder.create(tiny_config(tmp_path / "photos", tmp_path), "none", "abc")
    with kept(run) as keeper:
        assert keeper.process is None


def test_the_keeper_imports_nothing_heavy_while_it_waits() -> None:
    code = (
        "import sys; import sfora_ray.pack.keeper; heavy = {'torch', 'mlflow', 'numpy', 'pydantic', 'ray'};"
        "sys.exit(bool(heavy & {m.split('.')[0] for m in sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
