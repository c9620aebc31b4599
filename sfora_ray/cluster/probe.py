"""Proof, before a pack starts, that its folder is one and the same on every node of the cluster.

A folder of one node would be found out at the first checkpoint of a member on another, hours later. Nodes that join
later are not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ray
from ray import ObjectRef

from sfora_ray.cluster.nodes import Answer, Node, alive_nodes, ask_each
from sfora_ray.errors import ResourceError, SforaError
from sfora_ray.pack.marker import Marker, marked, reply
from sfora_ray.storage import ObjectStore, is_address, storage_environment

_SECONDS_TO_ANSWER = 60.0
# Somebody waits at the start: a store that is away for long is told rather than waited for.
_PAUSES_SECONDS = (1.0, 2.0)


@ray.remote(num_cpus=0, max_retries=0)
def _reply_there(marker: Marker, name: str) -> str:
    return reply(marker, name)


@ray.remote(num_cpus=0, max_retries=0)
def _store_fault_there(address: str) -> str:
    try:
        ObjectStore(address, pauses_seconds=_PAUSES_SECONDS).check()
    except SforaError as error:
        return str(error)
    return ""


def storage_probe(output: Path | str, *, seconds: float = _SECONDS_TO_ANSWER) -> int:
    """Prove that every node reads and writes the place ``output``; returns how many nodes there are.

    Raises:
        RunFolderError: the folder cannot be written here.
        StorageError: the object store does not answer here or refuses.
        ResourceError: a node does not share it, or did not answer; the message names each.
    """
    nodes = alive_nodes()
    if is_address(str(output)):
        ObjectStore(str(output), pauses_seconds=_PAUSES_SECONDS).check()
        if len(nodes) > 1:
            refuse_unshared(output, _ask_about_store(nodes, str(output), seconds))
        return len(nodes)
    with marked(Path(output).expanduser().absolute()) as marker:
        if len(nodes) > 1:
            refuse_unshared(output, _ask_about_folder(nodes, marker, seconds))
    return len(nodes)


def _ask_about_store(nodes: Sequence[Node], address: str, seconds: float) -> list[Answer[str]]:
    # As members are given them: a node has no credentials of its own.
    known = {"env_vars": storage_environment(address)}

    def send(node: Node) -> ObjectRef[str]:
        return _store_fault_there.options(scheduling_strategy=node.only_here, runtime_env=known).remote(address)

    return ask_each(nodes, send, seconds=seconds)


def _ask_about_folder(nodes: Sequence[Node], marker: Marker, seconds: float) -> list[Answer[str]]:
    def send(node: Node) -> ObjectRef[str]:
        return _reply_there.options(scheduling_strategy=node.only_here).remote(marker, node.id)

    return [_checked(answer, marker) for answer in ask_each(nodes, send, seconds=seconds)]


def _checked(answer: Answer[str], marker: Marker) -> Answer[str]:
    """A node that believes to have written is believed only if it can be read here."""
    if answer.fault or answer.value or marker.replied(answer.node.id):
        return answer
    return Answer(answer.node, "writes what cannot be read here")


def refuse_unshared(output: Path | str, answers: Sequence[Answer[str]]) -> None:
    """Raise ``ResourceError`` if a node has a fault to tell or told none in time; the message names each."""
    apart = [(answer.node.name, answer.fault or answer.value) for answer in answers if answer.fault or answer.value]
    if apart:
        named = "; ".join(f"{name} {fault}" for name, fault in apart)
        raise ResourceError(
            f"output {output}: must be one place that all {len(answers)} nodes read and write, got {len(apart)} "
            f"without it: {named}. Give a folder that every node mounts (NFS, EFS, a ReadWriteMany claim), "
            "or an object store (output=s3://bucket/runs)."
        )
