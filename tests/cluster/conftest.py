import gc
import logging
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import ray

from sfora_ray.cluster.launcher import ClusterMembers
from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.pack.launcher import MemberState
from sfora_ray.pack.run_folder import RunFolder
from tests.tiny import tiny_config

NUM_CPUS, NUM_GPUS = 5, 2
States = Mapping[str, MemberState]


@pytest.fixture(scope="package")
def cluster() -> Iterator[None]:
    """A local cluster whose two GPUs are only logical."""
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
        "RAY_AUTH_MODE": "disabled",
        "OMP_NUM_THREADS": "1",
    }
    with pytest.MonkeyPatch.context() as environment:
        for key, value in settings.items():
            environment.setenv(key, value)
        ray.init(
            address="local",
            num_cpus=NUM_CPUS,
            num_gpus=NUM_GPUS,
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
        yield
        with warnings.catch_warnings():
            # Ray does not wait for the servers that it ends.
            warnings.simplefilter("ignore", ResourceWarning)
            ray.shutdown()
            gc.collect()


def new_run(config: PackConfig) -> RunFolder:
    return RunFolder.create(config, "none")


def watch(members: ClusterMembers, *, until: MemberState | None = None) -> list[States]:
    """Poll until every member has ended, or one is in state ``until``; return all that was seen."""
    history: list[States] = []
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline:
        states = members.poll()
        history.append(states)
        if until in states.values() or set(states.values()) <= {"finished", "failed"}:
            return history
        time.sleep(0.2)
    raise AssertionError(f"not done in time: {history[-1]}")


def under_way(states: States) -> int:
    return sum(state in ("starting", "running") for state in states.values())


@dataclass(frozen=True)
class Launch:
    """A launch watched to its end: three members, and a fourth whose data are not there."""

    run: RunFolder
    members: ClusterMembers
    specs: tuple[MemberSpec, ...]
    broken: MemberSpec
    history: list[States]


@pytest.fixture(scope="package")
def launch(cluster: None, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Launch:
    place = tmp_path_factory.mktemp("launch")
    one_gpu = "resources.gpus_per_worker=1"
    run = new_run(tiny_config(images, place, "seeds=[0, 1, 2]", one_gpu))
    absent = tiny_config(place / "nothing", place, one_gpu)
    broken = MemberSpec(id="m03", seed=3, config=absent)
    members = ClusterMembers(run, [*run.specs(), broken])
    return Launch(run, members, run.specs(), broken, watch(members))
