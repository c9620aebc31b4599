"""What a Train run leaves on the cluster when its controller dies, and how it is removed.

Ray ends actors whose owner has died: a member task takes its controller along, a controller its workers. The placement
group stays, for it belongs to the job: with it the resources of every worker. Train's own cleaner finds dead
controllers through the State API alone, which is not there without the dashboard; the records of Ray's control store
tell it everywhere. Groups of a driver that died are removed by Ray.

A controller that Ray counts as dead is not gone yet. Ray asks its process to leave and kills it 5 s later; until then
it sees its workers go and may start others in a new group, which the store's own mark of orphans (set once, when the
creator died) misses. So a group is judged by the state of its creator, and nothing is gone before the process is.
"""

from __future__ import annotations

import time

import ray
from ray._private.state import state as cluster_state
from ray.core.generated.gcs_pb2 import (  # type: ignore[attr-defined]
    ActorTableData,
    PlacementGroupTableData,
    WorkerTableData,
)
from ray.util.placement_group import PlacementGroup, remove_placement_group

_TRAIN_ACTORS = ("TrainController", "RayTrainWorker", "SynchronizationActor", "DatasetManager", "PreemptionWatcher")
_SECONDS_BETWEEN_LOOKS = 0.1


def remove_orphaned_groups() -> int:
    """Remove this job's placement groups whose creator, an actor, is dead; return how many there were."""
    orphans = _orphans()
    for group in orphans:
        remove_placement_group(PlacementGroup(ray.PlacementGroupID(group.placement_group_id)))
    return len(orphans)


def train_actors() -> list[str]:
    """Return the kinds of this job's Train actors that have not ended, or whose process has not."""
    living = _living_workers()
    return [
        one.class_name
        for one in _actors()
        if one.class_name in _TRAIN_ACTORS and (one.state != ActorTableData.DEAD or one.address.worker_id in living)
    ]


def wait_until_gone(seconds: float) -> bool:
    """Remove what ended runs left until no Train actor and no group is there; return whether that came about."""
    deadline = time.monotonic() + seconds
    while train_actors() or remove_orphaned_groups() or _groups():
        if time.monotonic() > deadline:
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


def _orphans() -> list[PlacementGroupTableData]:
    groups = [group for group in _groups() if not ray.ActorID(group.creator_actor_id).is_nil()]
    if not groups:
        return []
    # Looked up after the groups: a creator that is not there was forgotten because it is long dead.
    living = {one.actor_id for one in _actors() if one.state != ActorTableData.DEAD}
    return [group for group in groups if group.creator_actor_id not in living]


def _groups() -> list[PlacementGroupTableData]:
    """Return this job's placement groups that hold or want resources; Ray's public table leaves out who made them."""
    table = cluster_state._connect_and_get_accessor().get_placement_group_table()
    groups = [PlacementGroupTableData.FromString(record) for record in table]
    job, gone = _job().binary(), PlacementGroupTableData.REMOVED
    return [group for group in groups if group.creator_job_id == job and group.state != gone and not group.is_detached]


def _actors() -> list[ActorTableData]:
    table = cluster_state._connect_and_get_accessor().get_actor_table(_job(), None)
    return [ActorTableData.FromString(record) for record in table]


def _living_workers() -> set[bytes]:
    """Return the ids of the worker processes that have not exited; Ray's record of one ends not with its node."""
    table = cluster_state._connect_and_get_accessor().get_worker_table()
    workers = (WorkerTableData.FromString(record) for record in table)
    nodes = {bytes.fromhex(node["NodeID"]) for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]
    return {
        worker.worker_address.worker_id
        for worker in workers
        if worker.is_alive and worker.worker_address.node_id in nodes
    }


def _job() -> ray.JobID:
    return ray.JobID(bytes.fromhex(ray.get_runtime_context().get_job_id()))
