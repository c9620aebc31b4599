"""``sfora-ray sweep`` and the job that does the same."""

import importlib.util
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

import sfora_ray.workflows.sweep
from sfora_ray.cli.sweep_table import headline, live_sweep, print_confirmed
from sfora_ray.errors import InputError
from sfora_ray.sweep.confirmation import Candidate, Confirmation, Confirmed, Verdict
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.status import sweep_view
from tests.cli.conftest import Call
from tests.sweep.paper import TrialsHere, end_the_last, paper_sweep, sweep_values
from tests.tiny_runs import write_config

SMALL = ("trials=2", "seeds=[5]", "pack.training={epochs: 2, evaluate_every: 1}")


@pytest.fixture
def config_path(images: Path, tmp_path: Path) -> Path:
    return write_config(tmp_path / "search.yaml", sweep_values(images, tmp_path))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> TrialsHere:
    """Let commands run trials in this process."""
    trials = TrialsHere()
    monkeypatch.setattr(sfora_ray.workflows.sweep, "TrialsOnRay", lambda: trials)
    return trials


def test_run_resume_and_status(config_path: Path, tmp_path: Path, here: TrialsHere, call: Call) -> None:
    ended = call("sweep", "run", config_path, *SMALL)
    assert (ended.code, ended.err) == (0, "")
    assert "2 of 2 trials run at once" in ended.out
    (folder,) = (tmp_path / "runs").glob("search-*")
    assert f"sweep folder {folder}" in ended.out
    assert f"is it really better? sfora-ray sweep confirm {folder}" in ended.out
    again = call("sweep", "run", config_path, *SMALL)
    assert again.code == 2
    assert f"sfora-ray sweep resume {folder}" in again.err
    assert call("sweep", "resume", folder, "--trials", "3").code == 0
    assert here.ran == [0, 1, 2]
    status = call("sweep", "status", folder)
    assert f"{folder.name}: finished, 3 of 3 trials ended" in status.out
    assert status.out.count("finished") >= 4
    told = json.loads(call("sweep", "status", folder, "--json").out)
    assert (told["sweep"]["planned"], len(told["ranking"]["trials"])) == (3, 3)


def test_dry_run_prints_space_and_plan_and_writes_nothing(config_path: Path, tmp_path: Path, call: Call) -> None:
    ended = call("sweep", "run", config_path, "--dry-run")
    assert ended.code == 0
    lines = dict(line.split("  ", 1) for line in ended.out.splitlines() if "  " in line)
    assert lines["recipe.weight"].strip() == "log_uniform: low 0.1, high 10.0"
    assert lines["trials"].strip() == "6, each of 2 member(s): 2 seed(s) x 1 fold(s)"
    assert lines["judged by"].strip() == "recall_at_1 on held-out training classes, mean over members, best epoch"
    assert "parameter group" in ended.out
    assert not (tmp_path / "runs").exists()


def test_a_misspelt_path_is_one_error_before_anything(config_path: Path, tmp_path: Path, call: Call) -> None:
    ended = call("sweep", "run", config_path, "space.recipe.wieght={distribution: uniform, low: 0, high: 1}")
    assert ended.code == 2
    assert "wieght" in ended.err
    assert not (tmp_path / "runs").exists()


def test_status_of_an_interrupted_sweep_shows_what_is_open(images: Path, tmp_path: Path, call: Call) -> None:
    sweep = paper_sweep(images, tmp_path, "selection.split=test")
    out = call("sweep", "status", sweep.path).out
    assert "interrupted, 5 of 6 trials ended, 1 under way" in out
    assert "best so far t005: recall_at_1 0.9000 with recipe.weight=4 model.dim=16 optimizer.lr=0.005" in out
    assert "by asha after epoch 2, at 0.7000" in out
    assert "selection: test. Chosen on the test classes" in out
    missing = call("sweep", "status", tmp_path)
    assert missing.code == 2
    assert "no sweep folder here" in missing.err


@pytest.mark.usefixtures("mlflow_store")
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
def test_mlflow_commands_take_sweep_folders(images: Path, tmp_path: Path, call: Call) -> None:
    sweep = paper_sweep(images, tmp_path)
    uri = f"sqlite:///{tmp_path}/other.db"
    assert "told" in call("mlflow", "sync", sweep.path, "--uri", uri).out
    assert "nothing was left running" in call("mlflow", "reconcile", sweep.path, "--uri", uri).out


def test_the_live_table_without_a_terminal_has_a_line_per_change(images: Path, tmp_path: Path) -> None:
    sweep, stream = paper_sweep(images, tmp_path), io.StringIO()
    with live_sweep(Console(file=stream, width=200)) as watch:
        watch(sweep_view(sweep))
        watch(sweep_view(sweep))
        end_the_last(sweep)
        watch(sweep_view(sweep))
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["t000", "t001", "t002", "t003", "t004", "t005", "5", "t005"]
    assert lines[-1].startswith("t005  finished  4/4  0.9000")
    assert lines[6] == headline_of_five()


def headline_of_five() -> str:
    best = "best so far t005: recall_at_1 0.9000 with recipe.weight=4 model.dim=16 optimizer.lr=0.005"
    return f"5 of 6 trials ended, 1 under way; {best}"


def test_the_live_table_on_a_terminal_redraws(images: Path, tmp_path: Path) -> None:
    sweep, stream = paper_sweep(images, tmp_path), io.StringIO()
    with live_sweep(Console(file=stream, width=160, force_terminal=True)) as watch:
        watch(sweep_view(sweep))
    assert "epoch 1, step 3: the loss is nan." in stream.getvalue()
    assert headline(sweep_view(sweep)) == headline_of_five()


def test_a_confirmation_shows_promise_and_truth() -> None:
    plan = Confirmation(
        sweep="search-0",
        top=1,
        seeds=(1, 2),
        selection="validation",
        metric="recall_at_1",
        candidates=(Candidate(label="default", values={}, promised=None),),
    )
    best = Verdict(
        label="t003",
        values={"recipe.weight": 0.2},
        promised=0.65,
        promised_std=None,
        remeasured=0.61,
        run="runs/x",
        mean=0.5,
        std=0.01,
        difference=0.02,
        ci95=(-0.01, 0.05),
        p_holm=0.5,
        says="no difference shown",
    )
    result = Confirmed(plan=plan, pack_selection="last", verdicts=(best, best), labels=("one label",), report="r.html")
    stream = io.StringIO()
    print_confirmed(Console(file=stream, width=160), result)
    shown = " ".join(stream.getvalue().split())
    assert "t003 0.6500 0.6100 0.5000 +0.0200 [-0.0100, +0.0500] 0.5000 no difference shown" in shown
    assert "t003: recipe.weight=0.2" in shown
    assert "one label" in shown


@pytest.fixture
def job() -> ModuleType:
    path = Path(__file__).parents[2] / "jobs" / "tune.py"
    spec = importlib.util.spec_from_file_location("tune_job", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_job_runs_and_submitted_again_goes_on(
    job: ModuleType, config_path: Path, here: TrialsHere, capsys: pytest.CaptureFixture[str]
) -> None:
    main: Callable[[list[str]], None] = job.main
    main([str(config_path), *SMALL, "trials=1"])
    main([str(config_path), *SMALL])
    assert here.ran == [0, 1]
    assert "best" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"needs the path of a config, got nothing"):
        main([])


def test_confirm_of_what_is_no_sweep(tmp_path: Path, call: Call) -> None:
    ended = call("sweep", "confirm", tmp_path, "--local")
    assert ended.code == 2
    assert "no sweep folder here" in ended.err
    assert not SweepFolder(tmp_path).confirm_path.exists()
