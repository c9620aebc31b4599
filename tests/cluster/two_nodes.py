"""Run by itself: a cluster of three raylets, of which the one that trains is killed. Prints what came of it as JSON."""

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray._private.state import state as cluster_state
from ray.cluster_utils import Cluster

from sfora_ray.cluster.launcher import ClusterMembers
from sfora_ray.cluster.leftovers import train_actors, wait_until_gone
from sfora_ray.cluster.member import NO_GPU
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.member_folder import MemberFolder
from tests.cluster.victims import epoch_of, worker_of
from tests.tiny import tiny_config, write_images
from tests.tiny_runs import train_here

LONG = ("seeds=[5]", "training.epochs=60", "training.evaluate_every=60")


@ray.remote(num_cpus=0)
def visible_gpus() -> str | None:
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def main(place: Path) -> None:
    images = write_images(place / "photos")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    trainers = [cluster.add_node(num_cpus=1, num_gpus=1) for _ in range(2)]
    ray.init(address=cluster.address, logging_level=logging.ERROR, log_to_driver=False)
    seen = ray.get([visible_gpus.options(runtime_env=NO_GPU, num_gpus=gpus).remote() for gpus in (0, 1)], timeout=120)
    run = RunFolder.create(tiny_config(images, place / "struck", *LONG), "none")
    members = ClusterMembers(run, run.specs())
    nodes = _train(members, run, cluster, trainers)
    gone = wait_until_gone(20)
    alone = train_here(tiny_config(images, place / "alone", *LONG))
    print(json.dumps(_told(run, alone) | {"nodes": nodes, "gone": gone, "actors": train_actors(), "gpus": seen}))  # noqa: T201
    ray.shutdown()
    cluster.shutdown()  # type: ignore[no-untyped-call]


def _train(members: ClusterMembers, run: RunFolder, cluster: Cluster, trainers: list[Any]) -> list[str]:
    """Train the member, killing the node it first trains on; return the nodes it was seen on, in order."""
    folder = run.member(run.specs()[0])
    nodes: list[str] = []
    deadline = time.monotonic() + 400
    while set(members.poll().values()) - {"finished", "failed"} and time.monotonic() < deadline:
        here = _node_of(worker_of(folder).pid) if epoch_of(folder) >= 2 and _is_new(folder, nodes) else ""
        if here and not nodes:
            cluster.remove_node(next(node for node in trainers if node.node_id == here), allow_graceful=False)
        if here:
            nodes.append(here)
        time.sleep(0.1)
    return nodes


def _is_new(folder: MemberFolder, nodes: list[str]) -> bool:
    return sum(event.event == "started" for event in folder.attempts()) > len(nodes)


def _node_of(pid: int) -> str:
    actors = cluster_state.actor_table(None).values()
    return next((actor["Address"]["NodeID"] for actor in actors if actor["Pid"] == pid), "")


def _told(run: RunFolder, alone: RunFolder) -> dict[str, object]:
    (spec,) = run.specs()
    there, here = run.member(spec), alone.member(spec)
    result = there.result()
    made = ("model.safetensors", "embeddings.train.npz", "embeddings.test.npz")
    same = [name for name in made if (there.path / name).read_bytes() == (here.path / name).read_bytes()]
    causes = [event.cause for event in there.attempts() if event.event == "ended"]
    return {"status": result and result.status, "same": same, "causes": causes}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
