"""A trial in this process: side by side, interrupted, at fault, and from another's state."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.sweep.exploit import adopt_state, keep_state
from sfora_ray.sweep.folder import SweepFolder, TrialFolder
from sfora_ray.sweep.records import Round
from sfora_ray.sweep.trial import end_of_failure, end_trial, run_trial
from sfora_ray.training.member import train_member
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.preflight import preflight
from sfora_ray.training.worker import Worker
from tests.tiny import tiny_values

EPOCHS = 3
GOOD = {"optimizer.lr": 1e-3}


def new_sweep(images: Path, place: Path, **changed: Any) -> SweepFolder:
    pack = tiny_values(images, place)
    pack["training"] = {"epochs": EPOCHS, "evaluate_every": 1, "checkpoint_every": 3}
    values = {
        "name": "tiny-sweep",
        "pack": pack,
        "space": {"optimizer.lr": {"distribution": "log_uniform", "low": 1e-6, "high": 1e30}},
        "trials": 4,
        "seeds": [0, 1],
        "selection": {"folds": 2},
        **changed,
    }
    config = SweepConfig.model_validate(values)
    plan = preflight(config.pack)
    return SweepFolder.create(config, plan.weights, plan.dataset_digest)


def run(sweep: SweepFolder, number: int, values: dict[str, Any], *, stop_at: int = 0) -> list[Round]:
    """Run a trial and return what it reported; it is interrupted in its report of epoch ``stop_at``."""
    told: list[Round] = []

    def report(of_epoch: Round) -> None:
        told.append(of_epoch)
        if of_epoch.epoch == stop_at:
            raise KeyboardInterrupt

    run_trial(sweep, number, values, report)
    return told


def seen(rounds: list[Round]) -> list[tuple[int, float, dict[str, dict[str, float]]]]:
    return [(one.epoch, one.value, one.members) for one in rounds]


@pytest.fixture(scope="module")
def whole(images: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepFolder, list[Round]]:
    sweep = new_sweep(images, tmp_path_factory.mktemp("whole"))
    sweep.begin_trial(0, GOOD)
    return sweep, run(sweep, 0, GOOD)


def test_each_member_is_what_it_would_be_alone(whole: tuple[SweepFolder, list[Round]], tmp_path: Path) -> None:
    sweep, rounds = whole
    assert [one.epoch for one in rounds] == [1, 2, 3]
    for name, seed, fold in sweep.config().member_names():
        config = sweep.config().trial_config(GOOD, seed, fold)
        alone = MemberFolder(tmp_path / name)
        train_member(MemberSpec(id="m00", seed=seed, config=config), alone, Worker.alone())
        assert {one.epoch: one.members[name] for one in rounds} == {
            record.epoch: record.metrics["validation"] for record in alone.epochs()
        }


def test_its_folds_hold_out_different_classes_and_the_mean_counts(whole: tuple[SweepFolder, list[Round]]) -> None:
    for one in whole[1]:
        assert sorted(one.members) == ["seed0-fold0", "seed0-fold1", "seed1-fold0", "seed1-fold1"]
        scores = [scores["recall_at_1"] for scores in one.members.values()]
        assert one.value == pytest.approx(sum(scores) / 4)
        assert one.members["seed0-fold0"] != one.members["seed0-fold1"]


def test_no_member_looks_at_a_test_class(whole: tuple[SweepFolder, list[Round]]) -> None:
    trial = whole[0].trial(0)
    for name, _, _ in whole[0].config().member_names():
        folder = trial.member(name)
        assert {split for record in folder.epochs() for split in record.metrics} == {"validation"}
        assert not list(folder.path.glob("embeddings.*"))


def test_its_end_is_what_the_best_epoch_came_to(whole: tuple[SweepFolder, list[Round]]) -> None:
    sweep, rounds = whole
    end = sweep.trial(0).end()
    assert end is not None
    assert (end.status, end.epoch, end.value) == ("finished", EPOCHS, max(one.value for one in rounds))
    assert seen(run(sweep, 0, GOOD)) == seen(rounds)  # a second time it only says what it has said


@pytest.mark.parametrize("stop_at", [1, 2])
def test_an_interrupted_trial_goes_on_and_says_everything(
    whole: tuple[SweepFolder, list[Round]], images: Path, tmp_path: Path, stop_at: int
) -> None:
    sweep = new_sweep(images, tmp_path)
    sweep.begin_trial(0, GOOD)
    with pytest.raises(KeyboardInterrupt):
        run(sweep, 0, GOOD, stop_at=stop_at)
    assert sweep.trial(0).end() is None
    assert seen(run(sweep, 0, GOOD)) == seen(whole[1])
    starts = [event.step for event in sweep.trial(0).member("seed1-fold1").attempts() if event.event == "started"]
    assert len(starts) == 2
    assert starts[1] > 0  # from its checkpoint, not from the start


def test_a_loss_that_is_not_finite_counts_as_the_worst(images: Path, tmp_path: Path) -> None:
    sweep = new_sweep(images, tmp_path, seeds=[0], selection={})
    values = {"optimizer.lr": 1e30}
    sweep.begin_trial(0, values)
    told = run(sweep, 0, values)
    end = sweep.trial(0).end()
    assert end is not None
    assert (end.status, end.value) == ("non_finite", 0.0)
    assert "the loss is" in end.reason
    assert told[-1].value == 0.0
    assert told[-1].epoch == end.epoch + 1
    before = (sweep.trial(0).path / "members/seed0-fold0/attempts.jsonl").read_bytes()
    run(sweep, 0, values)
    assert (sweep.trial(0).path / "members/seed0-fold0/attempts.jsonl").read_bytes() == before


def test_an_input_at_fault_fails_the_trial(images: Path, tmp_path: Path) -> None:
    photos = Path(shutil.copytree(images, tmp_path / "photos"))
    sweep = new_sweep(photos, tmp_path, seeds=[0], selection={})
    shutil.rmtree(photos)
    sweep.begin_trial(0, GOOD)
    assert run(sweep, 0, GOOD) == []
    end = sweep.trial(0).end()
    assert end is not None
    assert (end.status, end.value) == ("failed", None)
    assert "photos" in end.reason


@pytest.mark.parametrize(("cause", "status"), [("non_finite", "non_finite"), ("input", "failed")])
def test_a_member_that_failed_elsewhere_ends_the_trial(images: Path, tmp_path: Path, cause: Any, status: str) -> None:
    sweep = new_sweep(images, tmp_path)
    trial = sweep.begin_trial(0, GOOD)
    result = MemberResult(id="seed1-fold0", seed=1, status="failed", cause=cause, reason="no luck")
    told: list[Round] = []
    end_of_failure(trial, sweep.manifest(), result, told.append)
    end = trial.end()
    assert end is not None
    assert (end.status, end.reason) == (status, "seed1-fold0: no luck")
    assert [one.value for one in told] == ([0.0] if cause == "non_finite" else [])


def test_an_end_stays(images: Path, tmp_path: Path) -> None:
    sweep = new_sweep(images, tmp_path)
    trial = sweep.begin_trial(0, GOOD)
    end_trial(trial, sweep.manifest(), "failed", "first")
    end_trial(trial, sweep.manifest(), "stopped", "second")
    end = trial.end()
    assert end is not None
    assert end.reason == "first"


def test_a_trial_goes_on_from_the_state_of_another(
    whole: tuple[SweepFolder, list[Round]], images: Path, tmp_path: Path
) -> None:
    """It then ends as the other would have with its values from that epoch on."""
    sweep = new_sweep(images, tmp_path)
    better, worse = sweep.begin_trial(0, GOOD), sweep.begin_trial(1, {"optimizer.lr": 1e-5})
    for trial in (better, worse):
        with pytest.raises(KeyboardInterrupt):
            run(sweep, trial.record().number, trial.record().values, stop_at=2)
    keep_state(better, tmp_path / "kept")
    assert adopt_state(better, tmp_path / "kept") == 2
    assert len(better.rounds()) == 2
    assert adopt_state(worse, tmp_path / "kept") == 2
    assert [one.value for one in worse.rounds()][-1] == better.rounds()[-1].value
    assert worse.rounds()[-1].values == GOOD
    told = run(sweep, 1, GOOD)
    assert seen(told)[-1] == seen(whole[1])[-1]
    assert told[-1].values == GOOD
    assert ends(worse) == "finished"


def ends(trial: TrialFolder) -> str:
    end = trial.end()
    assert end is not None
    return end.status
