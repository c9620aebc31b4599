"""What dead actors leave on the cluster."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import ray
from ray._private.state import state as cluster_state
from ray.core.generated.gcs_pb2 import PlacementGroupTableData  # type: ignore[attr-defined]
from ray.exceptions import WorkerCrashedError
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group

from sfora_ray.cluster import leftovers
from sfora_ray.cluster.held import held_after_all
from sfora_ray.cluster.leftovers import remove_orphaned_groups, train_actors, wait_until_gone

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]

SECONDS = 60


@ray.remote(num_cpus=0)
class Controls:
    """Holds resources in a group, as a Train controller does."""

    def begin(self, place: Path) -> None:
        assert placement_group([{"CPU": 1}]).wait(SECONDS)
        (place / "actor").write_text(str(os.getpid()))


@ray.remote(num_cpus=0, max_retries=0)
def owns(place: Path) -> None:
    actor = Controls.remote()  # type: ignore[attr-defined]
    ray.get(actor.begin.remote(place))
    (place / "owner").write_text(str(os.getpid()))
    time.sleep(600)


@dataclass(frozen=True)
class Family:
    """A task, the actor that it owns, and the group of that."""

    task: ray.ObjectRef[None]
    place: Path

    def signal(self, who: str, number: signal.Signals) -> None:
        os.kill(int((self.place / who).read_text()), number)

    def lose_its_owner(self) -> None:
        self.signal("owner", signal.SIGKILL)
        with pytest.raises(WorkerCrashedError):
            ray.get(self.task, timeout=SECONDS)
        wait_for(lambda: set(states()) == {"DEAD"})


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Family]:
    monkeypatch.setattr(leftovers, "_TRAIN_ACTORS", ("Controls",))
    there = Family(owns.remote(tmp_path), tmp_path)
    wait_for((tmp_path / "owner").exists)
    yield there
    assert wait_until_gone(SECONDS)
    assert held_after_all() == []


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def states() -> list[str]:
    actors = cluster_state.actor_table(None).values()
    return [actor["State"] for actor in actors if actor["ActorClassName"] == "Controls"]


def unmarked(groups: list[PlacementGroupTableData]) -> list[PlacementGroupTableData]:
    """Return records as Ray has them of a group that an actor made after Ray had taken it for dead."""
    for group in groups:
        group.creator_actor_dead = False
    return groups


def test_a_group_is_removed_when_its_creator_is_dead_whether_marked_or_not(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = leftovers._groups
    monkeypatch.setattr(leftovers, "_groups", lambda: unmarked(read()))
    assert remove_orphaned_groups() == 0
    family.lose_its_owner()
    assert remove_orphaned_groups() == 1
    wait_for(lambda: remove_orphaned_groups() == 0)


def test_nothing_is_gone_before_the_process_of_a_dead_actor_is(family: Family) -> None:
    assert train_actors() == ["Controls"]
    family.signal("actor", signal.SIGSTOP)
    family.lose_its_owner()
    assert train_actors() == ["Controls"]
    assert not wait_until_gone(0.2)
    family.signal("actor", signal.SIGCONT)


def test_a_group_that_no_actor_made_stays() -> None:
    mine = placement_group([{"CPU": 1}])
    try:
        assert mine.wait(SECONDS)
        assert remove_orphaned_groups() == 0
        assert placement_group_table(mine)["state"] == "CREATED"
        assert held_after_all(0.0) == ["1 CPU", f"placement group {mine.id.hex()}"]
    finally:
        remove_placement_group(mine)
    assert held_after_all() == []
