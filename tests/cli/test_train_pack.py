"""The job that a Ray cluster runs: the same work, messages and exit codes as the command."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from sfora_ray.cli.main import ending
from sfora_ray.config.pack import PackConfig
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import Summary
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.refold import refold
from tests.cli.conftest import Call
from tests.tiny import tiny_config, tiny_values
from tests.tiny_runs import train_here, write_config

SCRIPT = Path(__file__).parents[2] / "jobs" / "train_pack.py"


@pytest.fixture
def job(call: Call) -> Iterator[ModuleType]:
    """The script as a module; ``call`` puts back the signal handler that it sets."""
    spec = importlib.util.spec_from_file_location("train_pack", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_pack"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["train_pack"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [([], "needs the path of a config, got nothing"), (["absent.yaml"], "absent.yaml: no readable config file")],
)
def test_bad_input_ends_with_2(
    arguments: list[str], words: str, job: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end, ending():
        job.main(arguments)
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_it_runs_or_resumes_on_ray_and_prints_the_summary(
    images: Path,
    tmp_path: Path,
    job: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[PackConfig] = []

    def run_or_resume(
        config: PackConfig, launcher: Launcher, *, watch: object, say: object
    ) -> tuple[RunFolder, Summary]:
        seen.append(config)
        run = train_here(config)
        return run, refold(run, (), say=lambda _: None)

    monkeypatch.setattr(job, "run_or_resume", run_or_resume)
    config = write_config(tmp_path / "tiny.yaml", tiny_values(images, tmp_path))
    with ending():
        job.main([str(config), "seeds=[7]", "schedule.warmup_epochs=0", "training.epochs=1"])
    assert seen == [tiny_config(images, tmp_path, "seeds=[7]", "schedule.warmup_epochs=0", "training.epochs=1")]
    assert "m00 seed 7" in capsys.readouterr().out
