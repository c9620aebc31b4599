import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from sfora_ray.cluster import launcher
from sfora_ray.cluster.causes import End
from sfora_ray.cluster.held import held_after_all
from sfora_ray.cluster.launcher import ClusterMembers
from sfora_ray.cluster.leftovers import train_actors, wait_until_gone
from sfora_ray.cluster.member import Landing
from sfora_ray.config.member import MemberSpec
from sfora_ray.pack import pauses
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.member_folder import MemberFolder
from tests.cluster.conftest import new_run, watch
from tests.cluster.victims import controller_of, scratch_left, steps_since_start, task_of, worker_of
from tests.tiny import STEPS_PER_EPOCH, tiny_config
from tests.tiny_runs import train_here

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]

LONG = ("seeds=[5]", "training.epochs=80", "training.evaluate_every=80", "training.progress_seconds=0.1")
VICTIMS: tuple[Callable[[MemberFolder], psutil.Process], ...] = (worker_of, task_of, controller_of)


@dataclass(frozen=True)
class Struck:
    """A member struck three times, beside one whose loss is not finite; and what was left of them."""

    run: RunFolder
    alone: RunFolder
    poisoned: MemberSpec
    actors: list[str]
    scratch: list[Path]
    held: list[str]

    @property
    def there(self) -> MemberFolder:
        return self.run.member(self.run.specs()[0])


@pytest.fixture(scope="module")
def struck(cluster: None, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Struck:
    place = tmp_path_factory.mktemp("struck")
    run = new_run(tiny_config(images, place / "struck", *LONG))
    poisoned = MemberSpec(id="m01", seed=5, config=tiny_config(images, place / "struck", *LONG, "optimizer.lr=1e30"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        members = ClusterMembers(run, [*run.specs(), poisoned])
        _strike(run.member(run.specs()[0]), members)
        watch(members)
        wait_until_gone(20)
    alone = train_here(tiny_config(images, place / "alone", *LONG))
    return Struck(run, alone, poisoned, train_actors(), scratch_left(place), held_after_all())


def _strike(folder: MemberFolder, members: ClusterMembers) -> None:
    """Kill one process of the member after the other, each time when it has made steps since it was last struck."""
    left = list(VICTIMS)
    deadline = time.monotonic() + 400
    while left and time.monotonic() < deadline:
        assert members.poll()["m00"] != "finished", f"it came to its end with {len(left)} strikes to go"
        if steps_since_start(folder, attempts=1 + len(VICTIMS) - len(left)) >= 2 * STEPS_PER_EPOCH:
            left.pop(0)(folder).kill()
        time.sleep(0.1)
    assert not left


@pytest.mark.slow
def test_a_member_struck_in_the_middle_ends_with_the_bits_of_one_left_alone(struck: Struck) -> None:
    here = struck.alone.member(struck.alone.specs()[0])
    for made in ("model.safetensors", "embeddings.train.npz", "embeddings.test.npz"):
        assert (struck.there.path / made).read_bytes() == (here.path / made).read_bytes(), made


@pytest.mark.slow
def test_each_time_it_goes_on_from_where_it_was(struck: Struck) -> None:
    steps = [event.step for event in struck.there.attempts() if event.event == "started"]
    assert len(steps) == 1 + len(VICTIMS)
    assert steps == sorted(set(steps))


@pytest.mark.slow
def test_its_result_says_why_it_was_started_again(struck: Struck) -> None:
    result = struck.there.result()
    assert result is not None
    assert len(result.restarts) == len(VICTIMS)
    assert all("died" in reason for reason in result.restarts), result.restarts
    ends = [event.cause for event in struck.there.attempts() if event.event == "ended"]
    assert ends == ["signal"] * len(VICTIMS)


@pytest.mark.slow
def test_a_loss_that_is_not_finite_is_not_tried_again(struck: Struck) -> None:
    folder = struck.run.member(struck.poisoned)
    result = folder.result()
    assert result is not None
    assert (result.status, result.cause, result.restarts) == ("failed", "non_finite", ())
    assert len([event for event in folder.attempts() if event.event == "started"]) == 1


@pytest.mark.slow
def test_nothing_is_left_behind(struck: Struck) -> None:
    assert struck.actors == []
    assert struck.scratch == []
    assert struck.held == []
    assert not list(struck.run.path.glob("members/*/ray"))


@ray.remote(num_cpus=0, max_retries=0)
def dies(task: dict[str, Any]) -> dict[str, Any]:
    with (Path(task["place"]) / "sent").open("a") as sent:
        sent.write("x")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


@ray.remote(num_cpus=0, max_retries=0)
def cannot(task: dict[str, Any]) -> dict[str, Any]:
    with (Path(task["place"]) / "sent").open("a") as sent:
        sent.write("x")
    return Landing(end=End(cause="exception", reason="a defect", again=False)).model_dump(mode="json")


@ray.remote(num_cpus=0, max_retries=0)
def starves(task: dict[str, Any]) -> dict[str, Any]:
    with (Path(task["place"]) / "sent").open("a") as sent:
        sent.write(f"{time.time()}\n")
    return Landing(end=End(cause="storage", reason="no space left", again=True)).model_dump(mode="json")


def test_storage_is_given_time_to_come_back(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "run_member", starves)
    monkeypatch.setattr(pauses, "PAUSES_SECONDS", (1.0, 2.0))
    run = new_run(tiny_config(images, tmp_path, "seeds=[0]", "resources.max_failures=2"))
    members = ClusterMembers(run, run.specs())
    assert watch(members)[-1] == {"m00": "failed"}
    first, second, third = map(float, (run.member(run.specs()[0]).path / "sent").read_text().split())
    assert second - first > 0.9
    assert third - second > 1.9


@pytest.mark.parametrize(
    ("task", "sent", "cause", "reason"),
    [(dies, 3, "signal", "WorkerCrashedError: "), (cannot, 1, "exception", "a defect")],
)
def test_a_member_is_sent_again_as_often_as_may_be(
    task: Any,
    sent: int,
    cause: str,
    reason: str,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launcher, "run_member", task)
    run = new_run(tiny_config(images, tmp_path, "seeds=[0]", "resources.max_failures=2"))
    assert watch(ClusterMembers(run, run.specs()))[-1] == {"m00": "failed"}
    folder = run.member(run.specs()[0])
    result = folder.result()
    assert result is not None
    assert (folder.path / "sent").read_text() == "x" * sent
    assert result.cause == cause
    assert result.reason.startswith(reason)
