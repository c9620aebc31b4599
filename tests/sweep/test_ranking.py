"""Which trial is best, and what the searcher is told."""

from pathlib import Path

import pytest

from sfora_ray.config.load import load_config
from sfora_ray.sweep.best import best_yaml, write_results
from sfora_ray.sweep.ending import is_complete, sweep_status
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.ranking import Ranking, judged, ranked, ranking
from sfora_ray.sweep.records import Round, TrialEnd
from sfora_ray.sweep.status import sweep_view
from sfora_ray.sweep.told import told
from sfora_ray.training.records import read_record
from tests.sweep.paper import DIM, LR, WEIGHT, end_the_last, paper_sweep, round_of, sweep_config


@pytest.fixture
def sweep(images: Path, tmp_path: Path) -> SweepFolder:
    return paper_sweep(images, tmp_path)


def test_finished_come_first_then_stopped_then_what_came_to_nothing(sweep: SweepFolder) -> None:
    order = [(trial.rank, trial.name, trial.status, trial.value) for trial in ranked(sweep)]
    assert order == [
        (1, "t003", "finished", 0.65),
        (2, "t000", "finished", 0.6),
        (3, "t001", "stopped", 0.7),
        (4, "t002", "non_finite", 0.0),
        (5, "t004", "failed", None),
        (6, "t005", "unfinished", 0.9),
    ]


def test_of_the_stopped_the_one_that_came_further_is_better(sweep: SweepFolder) -> None:
    first = sweep.trial(1).end()
    assert first is not None
    for number, epoch, value in ((6, 3, 0.1), (7, 2, 0.8), (8, 2, 0.7)):
        sweep.begin_trial(number, {WEIGHT: float(number)})
        sweep.trial(number).write_end(first.model_copy(update={"epoch": epoch, "value": value}))
    stopped = [trial.name for trial in ranked(sweep) if trial.status == "stopped"]
    assert stopped == ["t006", "t007", "t001", "t008"]


def test_a_value_has_its_members_and_their_spread(sweep: SweepFolder) -> None:
    best = ranking(sweep).best()
    assert best is not None
    assert best.judged_epoch == 2
    assert best.members == pytest.approx({"seed5-fold0": 0.64, "seed0-fold0": 0.66})
    assert best.std == pytest.approx(0.02 / 2**0.5)


@pytest.mark.parametrize(
    ("epoch", "values", "expected"),
    [
        ("best", [0.5, 0.7, 0.6], 2),
        ("best", [0.5, 0.7, 0.7], 2),
        ("last", [0.5, 0.7, 0.6], 3),
        ("best", [0.0, 0.0], 1),
    ],
)
def test_the_judged_epoch(epoch: str, values: list[float], expected: int) -> None:
    rounds = [Round(epoch=number, value=value, time_ms=1) for number, value in enumerate(values, start=1)]
    found = judged(rounds, "best" if epoch == "best" else "last")
    assert found is not None
    assert found.epoch == expected


def test_nothing_evaluated_is_judged_by_nothing() -> None:
    assert judged([], "best") is None


def test_a_stopped_trial_is_best_only_where_none_has_finished(sweep: SweepFolder) -> None:
    for number in (0, 3):
        sweep.trial(number).end_path.unlink()
    best = ranking(sweep).best()
    assert best is not None
    assert best.name == "t001"
    assert "No trial has finished; this one was stopped after 2 epochs" in best_yaml(sweep, ranking(sweep), best)
    sweep.trial(1).end_path.unlink()
    assert ranking(sweep).best() is None


def test_the_searcher_hears_of_every_trial(sweep: SweepFolder) -> None:
    heard = [(one.number, one.value, one.epoch, one.status) for one in told(sweep)]
    assert heard == [
        (0, 0.6, 4, "finished"),
        (1, 0.7, 2, "stopped"),
        (2, 0.0, 0, "non_finite"),
        (3, 0.65, 4, "finished"),
        (4, 0.0, 2, "failed"),
        (5, None, 2, ""),
    ]
    assert told(sweep)[3].values == {WEIGHT: 0.2, DIM: 16, LR: 0.001}


def test_the_best_is_a_ready_pack(sweep: SweepFolder) -> None:
    assert write_results(sweep).best() == ranking(sweep).best()
    assert read_record(Ranking, sweep.ranking_path) == ranking(sweep)
    pack = load_config(sweep.best_path)
    assert pack.name == "search-t003"
    assert pack.plain()["recipe"]["weight"] == 0.2
    assert (pack.model.dim, pack.optimizer.lr) == (16, 0.001)
    base = sweep.config().pack
    assert (pack.seeds, pack.selection, pack.output) == (base.seeds, base.selection, base.output)
    header = [line for line in sweep.best_path.read_text().splitlines() if line.startswith("#")]
    assert header[0] == (
        f"# The best configuration of the sweep {sweep.path.name}: trial t003, the best of 5 that have ended."
    )
    assert "recall_at_1 0.6500 +- 0.0141 over 2 members on held-out training classes, epoch 2" in header[4]
    assert f"#   sfora-ray sweep confirm {sweep.path}" in header
    assert not any("selection: test" in line for line in header)


def test_selection_on_test_is_stamped(images: Path, tmp_path: Path) -> None:
    sweep = paper_sweep(images, tmp_path, "selection.split=test")
    write_results(sweep)
    assert "# selection: test. It was chosen on the test classes" in sweep.best_path.read_text()


def test_complete_once_every_trial_has_ended(sweep: SweepFolder) -> None:
    write_results(sweep)
    assert (is_complete(sweep), sweep_status(sweep), sweep_view(sweep).state) == (False, "KILLED", "interrupted")
    end_the_last(sweep)
    assert (is_complete(sweep), sweep_status(sweep), sweep_view(sweep).state) == (True, "FINISHED", "finished")
    sweep.adopt(sweep.config().model_copy(update={"trials": 7}))
    assert (is_complete(sweep), sweep_status(sweep)) == (False, "KILLED")


def test_complete_also_where_the_space_is_used_up(images: Path, tmp_path: Path) -> None:
    space = "space={model.dim: {distribution: choice, values: [8, 16]}}"
    sweep = SweepFolder.create(sweep_config(images, tmp_path, space, "trials=9"), "none")
    for number, dim in enumerate((8, 16)):
        assert not is_complete(sweep)
        end = TrialEnd(status="finished", epoch=4, value=0.5, time_ms=1)
        sweep.begin_trial(number, {DIM: dim}).write_end(end)
    assert is_complete(sweep)


def test_status_shows_the_best_so_far_and_what_is_under_way(sweep: SweepFolder) -> None:
    view = sweep_view(sweep)
    assert str(view) == "interrupted, 5 of 6 trials ended, 1 under way"
    assert [(trial.name, trial.epoch) for trial in view.trials][-1] == ("t005", 2)
    assert view.best is not None
    assert (view.best.name, view.best.value) == ("t005", 0.9)
    assert view.seconds_left is None
    assert view.trials[2].note == "epoch 1, step 3: the loss is nan."


def test_a_trial_judged_by_its_last_epoch(images: Path, tmp_path: Path) -> None:
    sweep = paper_sweep(images, tmp_path, "selection.epoch=last")
    sweep.trial(5).append_round(round_of(4, 0.2))
    assert sweep_view(sweep).trials[5].value == 0.2
