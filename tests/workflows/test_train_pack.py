"""The common end of every command, with members that only seem to be."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import sfora_ray.workflows.train_pack as module
from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import BusyError, SforaError
from sfora_ray.folds import Moments
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.keeper import Keeper
from sfora_ray.pack.launcher import Launched, MemberState
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.attempts import begin_attempt, restarts
from sfora_ray.training.boundary import failed
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.train_pack import train_and_finish
from tests.tiny import tiny_config


class Seeming(Launcher):
    """Members of which each look finds the next state; after the last comes an error."""

    def __init__(self, states: Sequence[MemberState], error: Exception | None = None) -> None:
        super().__init__(local=True)
        self._states = list(states)
        self._error = error
        self._specs: Sequence[MemberSpec] = ()

    def launch(self, run: RunFolder, specs: Sequence[MemberSpec]) -> Launched:  # noqa: ARG002
        self._specs = specs
        return self

    def poll(self) -> Mapping[str, MemberState]:
        if not self._states:
            assert self._error is not None
            raise self._error
        state = self._states.pop(0)
        return {spec.id: state for spec in self._specs}

    def stop(self) -> None:
        pass

    def gather(self, finished: Sequence[MemberSpec]) -> PackBlocks:
        raise NotImplementedError

    def moments(self, blocks: PackBlocks) -> Moments:
        raise NotImplementedError


def silent(*_: object) -> None:
    pass


@pytest.fixture
def run(images: Path, tmp_path: Path) -> RunFolder:
    return RunFolder.create(tiny_config(images, tmp_path, "seeds=[5]"), weights="none")


def finish(run: RunFolder, launcher: Launcher) -> None:
    tracker = run.manifest().config.tracking.build()
    train_and_finish(run, tracker, launcher, watch=silent, say=silent)


@pytest.mark.parametrize("is_taken_over", [True, False])
def test_the_tracker_hears_nothing_from_a_driver_that_was_succeeded(
    run: RunFolder, is_taken_over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, told = Keeper(None), []

    @contextmanager
    def kept(_: RunFolder) -> Iterator[Keeper]:
        yield keeper

    monkeypatch.setattr(module, "kept", kept)
    monkeypatch.setattr(module, "tell_within", lambda *_, **__: told.append(1))
    error = BusyError("taken over") if is_taken_over else SforaError("something else")
    with pytest.raises(type(error), match=str(error)):
        finish(run, Seeming(["running"], error))
    assert (keeper._is_needed, told) == ((False, []) if is_taken_over else (True, [1]))


def test_a_look_that_cannot_be_taken_is_left_out(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LOOKS", 0.01)

    def away(*_: object) -> None:
        raise OSError("Stale file handle")

    monkeypatch.setattr(module, "member_views", away)
    with pytest.raises(SforaError, match="no member finished"):
        finish(run, Seeming(["running", "failed"]))


def test_a_member_that_goes_on_after_a_failure_knows_why_it_failed(run: RunFolder) -> None:
    (spec,) = run.specs()
    folder = run.member(spec)
    begin_attempt(folder, 0)
    folder.write_result(failed(spec, folder, "non_finite", "the loss is nan"))
    with pytest.raises(SforaError, match="no member finished"):
        finish(run, Seeming(["failed"]))
    begin_attempt(folder, 0)
    assert restarts(folder.attempts()) == ("the loss is nan",)
