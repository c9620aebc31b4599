"""What a Train run leaves on the cluster when its controller dies, and how it is removed.

Ray ends actors whose owner has died: a member task takes its controller along, a controller its workers, within about
a second. The placement group stays, for it belongs to the job: with it the resources of every worker. Train's own
cleaner finds dead controllers through the State API alone, which is not there without the dashboard; the controller's
records in Ray's control store tell it everywhere. Groups of a driver that died are removed by Ray.
"""

from __future__ import annotations

import time

import ray
from ray._private.state import state as cluster_state
from ray.core.generated.gcs_pb2 import PlacementGroupTableData  # type: ignore[attr-defined]
from ray.util.placement_group import PlacementGroup, remove_placement_group

_TRAIN_ACTORS = ("TrainController", "RayTrainWorker", "SynchronizationActor", "DatasetManager", "PreemptionWatcher")
_SECONDS_BETWEEN_LOOKS = 0.1


def remove_orphaned_groups() -> int:
    """Remove this job's placement groups whose creator is dead; return how many there were."""
    orphans = [group for group in _groups() if group.creator_actor_dead]
    for group in orphans:
        remove_placement_group(PlacementGroup(ray.PlacementGroupID(group.placement_group_id)))
    return len(orphans)


def train_actors() -> list[str]:
    """Return the kinds of this job's Train actors that have not ended."""
    actors = cluster_state.actor_table(None, job_id=_job()).values()
    return [one["ActorClassName"] for one in actors if one["State"] != "DEAD" and _is_trains(one["ActorClassName"])]


def wait_until_gone(seconds: float) -> bool:
    """Remove what ended runs left until no Train actor and no group is there; return whether that came about."""
    deadline = time.monotonic() + seconds
    while train_actors() or remove_orphaned_groups() or _groups():
        if time.monotonic() > deadline:
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


def _is_trains(class_name: str) -> bool:
    return class_name in _TRAIN_ACTORS


def _groups() -> list[PlacementGroupTableData]:
    """Return this job's placement groups that hold or want resources; Ray's public table leaves out who made them."""
    table = cluster_state._connect_and_get_accessor().get_placement_group_table()
    groups = [PlacementGroupTableData.FromString(record) for record in table]
    job, gone = _job().binary(), PlacementGroupTableData.REMOVED
    return [group for group in groups if group.creator_job_id == job and group.state != gone and not group.is_detached]


def _job() -> ray.JobID:
    return ray.JobID(bytes.fromhex(ray.get_runtime_context().get_job_id()))
