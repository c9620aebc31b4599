"""What lies in a sweep folder, and what a crash may leave there."""

import json
from pathlib import Path

import pytest

from sfora_ray.errors import RunFolderError
from sfora_ray.pack.lock import run_lock
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.records import Round, TrialEnd
from tests.sweep.paper import VALUES, paper_sweep, round_of, sweep_config


@pytest.fixture
def sweep(images: Path, tmp_path: Path) -> SweepFolder:
    return paper_sweep(images, tmp_path)


def test_the_folder_is_named_by_what_is_computed(sweep: SweepFolder, images: Path, tmp_path: Path) -> None:
    config = sweep.config()
    assert sweep.path == tmp_path / "runs" / f"search-{config.digest()}"
    assert SweepFolder.open(sweep.path).config() == config
    assert SweepFolder.of(sweep_config(images, tmp_path, "trials=60")) == sweep
    assert SweepFolder.of(sweep_config(images, tmp_path, "seeds=[1]")) != sweep


def test_a_trial_is_recorded_before_it_starts_and_once(sweep: SweepFolder) -> None:
    trial = sweep.begin_trial(6, {"recipe.weight": 2.0})
    written = trial.record_path.read_bytes()
    assert sweep.begin_trial(6, {"recipe.weight": 2.0}) == trial
    assert trial.record_path.read_bytes() == written
    with pytest.raises(RunFolderError, match=r"trial 6 tries \{'recipe.weight': 2.0\}, got \{'recipe.weight': 3.0\}"):
        sweep.begin_trial(6, {"recipe.weight": 3.0})
    assert sweep.numbers() == (0, 1, 2, 3, 4, 5, 6)


def test_trials_are_read_by_number(sweep: SweepFolder) -> None:
    trials = sweep.trials()
    assert [trial.values for trial in trials] == list(VALUES)
    assert [trial.name for trial in trials] == ["t000", "t001", "t002", "t003", "t004", "t005"]
    statuses = [None if trial.end is None else trial.end.status for trial in trials]
    assert statuses == ["finished", "stopped", "non_finite", "finished", "failed", None]
    sweep.begin_trial(1000, {})
    assert sweep.numbers()[-1] == 1000


def test_a_folder_without_a_record_is_no_trial(sweep: SweepFolder) -> None:
    (sweep.trials_path / "t006").mkdir()
    (sweep.trials_path / "t06x").mkdir()
    (sweep.trials_path / "t06x" / "trial.json").write_text("{}")
    assert sweep.numbers() == (0, 1, 2, 3, 4, 5)


def test_a_torn_last_round_is_left_out_and_cut_off(sweep: SweepFolder) -> None:
    trial = sweep.trial(5)
    with trial.rounds_path.open("a") as stream:
        stream.write('{"epoch": 4, "val')
    assert [one.epoch for one in trial.rounds()] == [2]
    trial.append_round(round_of(4, 0.1))
    assert [one.value for one in trial.rounds()] == [0.9, 0.1]


def test_what_is_written_again_replaces_what_came_after(sweep: SweepFolder) -> None:
    trial = sweep.begin_trial(7, {})
    for epoch, value in ((2, 0.1), (4, 0.2), (6, 0.3), (4, 0.5)):
        trial.append_round(Round(epoch=epoch, value=value, time_ms=1))
    assert [(one.epoch, one.value) for one in trial.rounds()] == [(2, 0.1), (4, 0.5)]


def test_an_end_that_is_no_number_is_refused(sweep: SweepFolder) -> None:
    with pytest.raises(ValueError, match="finite"):
        TrialEnd(status="finished", epoch=1, value=float("nan"), time_ms=1)
    end = json.loads(sweep.trial(0).end_path.read_text())
    sweep.trial(0).end_path.write_text(json.dumps({**end, "status": "lost"}))
    with pytest.raises(RunFolderError, match=r"end.json: status: .*got 'lost'. The folder was made by another version"):
        sweep.trials()


def test_the_same_sweep_again_is_refused_with_the_way_on(sweep: SweepFolder) -> None:
    with pytest.raises(RunFolderError, match=f"Continue it with `sfora-ray sweep resume {sweep.path}`"):
        SweepFolder.create(sweep.config(), "none")


def test_a_folder_of_something_else_is_refused(images: Path, tmp_path: Path) -> None:
    config = sweep_config(images, tmp_path)
    config.folder.mkdir(parents=True)
    (config.folder / "run.lock").touch()
    SweepFolder.of(config).refuse_taken()
    (config.folder / "notes.txt").touch()
    with pytest.raises(RunFolderError, match="is not empty and holds no sweep"):
        SweepFolder.of(config).refuse_taken()
    with pytest.raises(RunFolderError, match=r"no sweep folder here \(no sweep.json\)"):
        SweepFolder.open(config.folder)


def test_a_changed_config_does_not_open_the_old_folder(sweep: SweepFolder) -> None:
    manifest = json.loads(sweep.manifest_path.read_text())
    manifest["config"]["seeds"] = [1]
    sweep.manifest_path.write_text(json.dumps(manifest))
    with pytest.raises(RunFolderError, match=f"but the folder was made for {manifest['digest']}"):
        SweepFolder.open(sweep.path)


def test_more_trials_are_adopted(sweep: SweepFolder) -> None:
    sweep.adopt(sweep.config().model_copy(update={"trials": 60}))
    assert SweepFolder.open(sweep.path).config().trials == 60


def test_a_lock_says_that_it_is_written(sweep: SweepFolder) -> None:
    assert not sweep.is_written()
    with run_lock(sweep.path):
        assert sweep.is_written()
