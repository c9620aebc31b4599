"""What a confirmation trains, with which seeds, and what it says."""

from pathlib import Path

import pytest

from sfora_ray.errors import InputError, RunFolderError
from sfora_ray.sweep.confirmation import confirming_pack, fresh_seeds, plan_confirmation, verdict_in_words
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.records import TrialEnd
from tests.sweep.paper import DIM, WEIGHT, end_the_last, paper_sweep


@pytest.fixture
def sweep(images: Path, tmp_path: Path) -> SweepFolder:
    return paper_sweep(images, tmp_path)


@pytest.mark.parametrize(
    ("used", "number", "expected"),
    [((0,), 3, (1, 2, 3)), ((5, 0), 5, (1, 2, 3, 4, 6)), ((7,), 2, (0, 1))],
)
def test_seeds_are_fresh_and_the_smallest(used: tuple[int, ...], number: int, expected: tuple[int, ...]) -> None:
    assert fresh_seeds(used, number) == expected


def test_the_default_and_the_best_finished_are_trained(sweep: SweepFolder) -> None:
    end_the_last(sweep)
    plan = plan_confirmation(sweep, top=2, num_seeds=3)
    assert [(one.label, one.promised) for one in plan.candidates] == [("default", None), ("t005", 0.9), ("t003", 0.65)]
    assert plan.seeds == (1, 2, 3)
    many = plan_confirmation(sweep, top=9, num_seeds=2)
    assert [one.label for one in many.candidates] == ["default", "t005", "t003", "t000"]


def test_equal_configurations_are_trained_once_and_the_default_is_known(sweep: SweepFolder) -> None:
    end = TrialEnd(status="finished", epoch=4, value=0.99, time_ms=1)
    default = {WEIGHT: sweep.config().pack.plain()["recipe"]["weight"], DIM: 8}
    sweep.begin_trial(6, default).write_end(end)
    sweep.begin_trial(7, sweep.trial(3).record().values).write_end(end.model_copy(update={"value": 0.1}))
    plan = plan_confirmation(sweep, top=9, num_seeds=2)
    assert [(one.label, one.promised) for one in plan.candidates] == [("default", 0.99), ("t003", 0.65), ("t000", 0.6)]


def test_packs_differ_in_the_values_alone(sweep: SweepFolder) -> None:
    plan, config = plan_confirmation(sweep, top=1, num_seeds=3), sweep.config()
    default, best = (confirming_pack(config, plan, one, "/runs/confirm") for one in plan.candidates)
    assert (default.name, best.name) == ("search-default", "search-t003")
    assert default.seeds == best.seeds == (1, 2, 3)
    assert default.selection == best.selection == config.pack.selection
    assert best.output == "/runs/confirm"
    same = {"name": "", "model": None, "recipe": None, "optimizer": None}
    assert {**default.plain(), **same} == {**best.plain(), **same}
    assert (best.model.dim, best.optimizer.lr) == (16, 0.001)


def test_more_members_than_seeds_are_not_demanded(images: Path, tmp_path: Path) -> None:
    sweep = paper_sweep(images, tmp_path, "pack.seeds=[0, 1, 2, 3]", "pack.min_members=4")
    plan = plan_confirmation(sweep, top=1, num_seeds=2)
    assert confirming_pack(sweep.config(), plan, plan.candidates[0], "runs").min_members == 2


@pytest.mark.parametrize(("top", "seeds"), [(0, 5), (1, 1)])
def test_too_little_to_compare_is_refused(sweep: SweepFolder, top: int, seeds: int) -> None:
    with pytest.raises(InputError, match=f"--seeds of 2 or more, got {top} and {seeds}"):
        plan_confirmation(sweep, top=top, num_seeds=seeds)


def test_nothing_finished_is_nothing_to_confirm(sweep: SweepFolder) -> None:
    for number in (0, 3):
        sweep.trial(number).end_path.unlink()
    with pytest.raises(RunFolderError, match=r"no trial has finished .* sfora-ray sweep resume"):
        plan_confirmation(sweep, top=1, num_seeds=2)


@pytest.mark.parametrize(
    ("difference", "ci95", "p_holm", "smallest", "expected"),
    [
        (0.02, (0.01, 0.03), 0.03, 0.01, "better than the default"),
        (-0.02, (-0.03, -0.01), 0.03, 0.01, "worse than the default"),
        (0.02, (-0.01, 0.05), 0.2, 0.06, "no difference shown"),
        (0.02, None, 1.0, None, "no difference shown"),
        (0.02, (0.01, 0.03), 0.19, 0.1875, "better by its interval; 5 seeds can give no adjusted p below 0.188"),
        (-0.02, (-0.03, -0.01), 0.07, 0.01, "worse by its interval alone"),
    ],
)
def test_the_verdict(
    difference: float, ci95: tuple[float, float] | None, p_holm: float, smallest: float | None, expected: str
) -> None:
    assert verdict_in_words(difference, ci95, p_holm, smallest, 5) == expected
