from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sfora_ray.config.load import build_config
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.refold import refold
from tests.cli.conftest import Call, Ended, call
from tests.tiny import tiny_values
from tests.tiny_runs import train_here

__all__ = ["Values", "call", "refused", "whole"]

Values = dict[str, Any]
Facts = tuple[str, int, int, str]


def facts_of(path: Path) -> Facts:
    state = path.lstat()
    if path.is_symlink():
        return "link", 0, state.st_mtime_ns, str(path.readlink())
    if path.is_dir():
        return "folder", 0, 0, ""  # a lock that came and went changes its time
    return "file", state.st_size, state.st_mtime_ns, sha256(path.read_bytes()).hexdigest()


def listing(place: Path) -> dict[str, Facts]:
    """Return everything below a folder with sizes, times and digests; decoded images may be kept and are left out."""
    found = [place, *(path for path in place.rglob("*") if not path.is_relative_to(place / "cache"))]
    return {path.relative_to(place).as_posix(): facts_of(path) for path in found if path.exists() or path.is_symlink()}


@dataclass(frozen=True)
class Refused:
    """Calls a command that must refuse what it is given."""

    call: Call
    place: Path

    def __call__(self, *arguments: object, words: tuple[str, ...], code: int = 2) -> Ended:
        """Prove: this exit code, one message with these words, no traceback, and not a byte or time changed."""
        # Whether there is a cache changes the time of the folder it lies in.
        (self.place / "cache").mkdir(exist_ok=True)
        before = listing(self.place)
        ended = self.call(*arguments)
        assert ended.code == code, ended
        assert ended.err.startswith("error: "), ended.err
        assert [line for line in ended.err.splitlines() if line.startswith("error: ")] == ended.err.splitlines()[:1]
        assert "Traceback" not in ended.err + ended.out
        for word in words:
            assert word in ended.err
        assert listing(self.place) == before
        return ended


@pytest.fixture
def refused(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refused:
    """A working directory of its own, so that whatever a command leaves there is seen."""
    monkeypatch.chdir(tmp_path)
    return Refused(call, tmp_path)


@pytest.fixture(scope="session")
def whole(images: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished pack of two members with folds, summary and report; tests break copies of it."""
    place = tmp_path_factory.mktemp("whole")
    run = train_here(build_config(tiny_values(images, place), place="tiny"))
    refold(run, (), say=lambda _: None)
    return run
