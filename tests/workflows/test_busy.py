"""Every command that writes a run folder waits for its turn, and changes nothing if that does not come."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

import sfora_ray.workflows.refold
import sfora_ray.workflows.run_pack
from sfora_ray.errors import BusyError
from sfora_ray.pack.lock import LOCK_NAME, run_lock
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.refold import rebuild_report, refold
from sfora_ray.workflows.run_pack import resume_pack, run_or_resume
from tests.tiny import tiny_config
from tests.tiny_runs import train_here


def silent(_: object) -> None:
    """Watch and hear nothing."""


@pytest.fixture(scope="module")
def run(images: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    trained = train_here(tiny_config(images, tmp_path_factory.mktemp("busy"), "seeds=[5]"))
    refold(trained, (), say=silent)
    return trained


COMMANDS: dict[str, Callable[[RunFolder], object]] = {
    "resume": lambda run: resume_pack(run.path, Launcher(local=True), watch=silent, say=silent),
    "job": lambda run: run_or_resume(run.manifest().config, Launcher(local=True), watch=silent, say=silent),
    "fold": lambda run: refold(run, ("uncentred:4",), say=silent),
    "report": rebuild_report,
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_folder_that_is_being_written(
    command: Callable[[RunFolder], object], run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = functools.partial(run_lock, patience_seconds=0)
    for module in (sfora_ray.workflows.refold, sfora_ray.workflows.run_pack):
        monkeypatch.setattr(module, "run_lock", at_once)
    before = everything(run.path)
    with run_lock(run.path), pytest.raises(BusyError, match=f"{run.path}: is being written by process"):
        command(run)
    assert everything(run.path) == before
    command(run)
    assert not (run.path / LOCK_NAME).exists()


def everything(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
