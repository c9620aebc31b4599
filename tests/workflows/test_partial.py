"""Packs of which a member fails."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.console import Console

import sfora_ray.workflows.patient
import sfora_ray.workflows.train_pack
from sfora_ray.cli.summary_table import print_summary
from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.folds import Moments
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.keeper import Keeper
from sfora_ray.pack.launcher import Launched, MemberState
from sfora_ray.pack.local import blocks_from_folder, train_moments
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.attempts import begin_attempt, end_attempt
from sfora_ray.training.boundary import failed, member_result
from sfora_ray.training.preflight import preflight
from sfora_ray.training.worker import Worker
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import resume_pack, run_pack
from tests.tiny import tiny_config

UNLUCKY_SEED = 3


class Here:
    """Members of this process; the one of the unlucky seed dies twice and fails."""

    def __init__(self, run: RunFolder, specs: Sequence[MemberSpec], *, unlucky: bool) -> None:
        self._run = run
        self._specs = specs
        self._unlucky = unlucky

    def poll(self) -> Mapping[str, MemberState]:
        return {spec.id: self._end(spec) for spec in self._specs}

    def stop(self) -> None:
        raise AssertionError("nobody stopped it")

    def gather(self, finished: Sequence[MemberSpec]) -> PackBlocks:
        return blocks_from_folder(self._run, finished)

    def moments(self, blocks: PackBlocks) -> Moments:
        return train_moments(blocks)

    def _end(self, spec: MemberSpec) -> MemberState:
        folder = self._run.member(spec)
        if not (self._unlucky and spec.seed == UNLUCKY_SEED):
            return member_result(spec, folder.path, Worker.alone()).status
        for reason in ("killed by SIGSEGV", "killed by SIGKILL"):
            begin_attempt(folder, step=0)
            end_attempt(folder, "signal", reason)
        folder.write_result(failed(spec, folder, "signal", "killed by SIGKILL"))
        return "failed"


class Hereabouts(Launcher):
    """The launcher of such members."""

    def __init__(self, *, unlucky: bool) -> None:
        super().__init__(local=True)
        self._unlucky = unlucky

    def launch(self, run: RunFolder, specs: Sequence[MemberSpec]) -> Launched:
        return Here(run, specs, unlucky=self._unlucky)


def silent(_: object) -> None:
    """Watch and hear nothing."""


@pytest.fixture(scope="module")
def partial(images: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    config = tiny_config(images, tmp_path_factory.mktemp("partial"), "seeds=[5, 3, 7]", "min_members=2")
    run, _ = run_pack(config, Hereabouts(unlucky=True), watch=silent, say=silent)
    return run


def test_what_finished_is_folded(partial: RunFolder) -> None:
    summary = partial.summary()
    assert (summary.pack.num_members, summary.pack.num_planned) == (2, 3)
    assert summary.folds[0].num_members == 2
    assert [point.size for point in summary.pack_curve] == [1, 2]
    assert "1 of 3 members did not finish and are in no number here" in summary.pack.notes
    unlucky = summary.members[1]
    assert (unlucky.status, unlucky.cause, unlucky.reason) == ("failed", "signal", "killed by SIGKILL")
    assert unlucky.restarts == ("killed by SIGSEGV",)
    assert unlucky.why == "signal, restarted once: killed by SIGKILL"


def test_table_and_report_say_why(partial: RunFolder) -> None:
    console = Console(width=140, record=True)
    print_summary(console, partial.summary(), partial)
    said = console.export_text()
    assert "2 members of 3 (1 missing)" in said
    assert "m01 seed 3 failed: signal, restarted once: killed by SIGKILL" in said
    report = (partial.report_path / "report.md").read_text()
    assert "m01 failed (signal, restarted once: killed by SIGKILL)" in report
    assert "2 of 3 members finished" in report


def test_fewer_than_min_members_are_not_folded(images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, "seeds=[5, 3]", "min_members=2")
    with pytest.raises(SforaError) as caught:
        run_pack(config, Hereabouts(unlucky=True), watch=silent, say=silent)
    run = RunFolder.of(config)
    assert caught.value.exit_code == 1
    assert "1 of 2 members finished, fewer than min_members (2)" in str(caught.value)
    assert "m01 (seed 3): killed by SIGKILL" in str(caught.value)
    assert f"sfora-ray pack resume {run.path}" in str(caught.value)
    assert not run.summary_path.exists()
    assert not run.folds_path.exists()
    resumed, summary = resume_pack(run.path, Hereabouts(unlucky=False), watch=silent, say=silent)
    assert [member.status for member in summary.members] == ["finished", "finished"]
    assert json.loads(resumed.summary_path.read_text())["pack"]["num_members"] == 2


def test_resume_completes_it_and_renews_everything(partial: RunFolder) -> None:
    trained = partial.member(partial.specs()[0]).result_path.stat().st_mtime_ns
    run, summary = resume_pack(partial.path, Hereabouts(unlucky=False), watch=silent, say=silent)
    assert partial.member(partial.specs()[0]).result_path.stat().st_mtime_ns == trained
    assert summary == run.summary()
    assert (summary.pack.num_members, summary.folds[0].num_members) == (3, 3)
    assert [point.size for point in summary.pack_curve] == [1, 2, 3]
    assert not any("did not finish" in note for note in summary.pack.notes)
    assert summary.members[1].restarts == ("killed by SIGSEGV", "killed by SIGKILL")
    assert "Partial pack" not in (run.report_path / "report.md").read_text()


@pytest.mark.usefixtures("mlflow_store")
def test_an_absent_tracker_is_a_warning_to_a_pack_that_has_begun(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The keeper of a driver whose tracker stays away would go on asking for minutes.
    monkeypatch.setattr(sfora_ray.workflows.train_pack, "kept", lambda _: nullcontext(Keeper(None)))
    monkeypatch.setitem(sfora_ray.workflows.patient.PATIENCE_SECONDS, "FINISHED", 0.1)
    config = tiny_config(images, tmp_path, "seeds=[5]", "tracking={uri: 'http://127.0.0.1:9'}")
    run = RunFolder.create(config, preflight(config).weights)
    said: list[str] = []
    _, summary = resume_pack(run.path, Hereabouts(unlucky=False), watch=silent, say=said.append)
    assert summary.pack.num_members == 1
    assert said[0].startswith("warning: ")
    assert "the tracker is told when it answers" in said[0]
    assert any("sfora-ray mlflow sync" in text for text in said)
