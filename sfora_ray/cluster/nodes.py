"""Every node of the cluster, and one question put to each of them at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import ray
from ray import ObjectRef
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sfora_ray.cluster.causes import last_line

T = TypeVar("T")


@dataclass(frozen=True)
class Node:
    """A node that is alive; ``resources`` are what it has in all, in Ray's names."""

    id: str
    hostname: str
    address: str
    resources: Mapping[str, float]

    @property
    def name(self) -> str:
        """Return the node as people know it: ``hostname (address)``."""
        return f"{self.hostname} ({self.address})"

    @property
    def only_here(self) -> NodeAffinitySchedulingStrategy:
        """Return the strategy that lets a task run on this node or not at all."""
        return NodeAffinitySchedulingStrategy(self.id, soft=False)


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a node said, or, where ``fault`` is not empty, why it said nothing."""

    node: Node
    value: T | None
    fault: str = ""


def alive_nodes() -> tuple[Node, ...]:
    """Return the nodes that Ray believes to be alive, in the order of their names."""
    seen = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    nodes = [
        Node(node["NodeID"], node["NodeManagerHostname"], node["NodeManagerAddress"], node["Resources"])
        for node in seen
    ]
    return tuple(sorted(nodes, key=lambda node: (node.name, node.id)))


def ask_each(nodes: Sequence[Node], ask: Callable[[Node], ObjectRef[T]], *, seconds: float) -> list[Answer[T]]:
    """Put a question to every node and return the answers, in order.

    Args:
        nodes: to be asked.
        ask: sends the task, pinned to the node by ``only_here``.
        seconds: a node that has not answered by then has a fault, as has one whose task failed.
    """
    refs = [ask(node) for node in nodes]
    if not refs:
        return []
    ready, _ = ray.wait(refs, num_returns=len(refs), timeout=seconds)
    return [
        _answer(node, ref) if ref in ready else _silent(node, ref, seconds)
        for node, ref in zip(nodes, refs, strict=True)
    ]


def _answer(node: Node, ref: ObjectRef[T]) -> Answer[T]:
    try:
        return Answer(node, ray.get(ref, timeout=10))
    except ray.exceptions.RayError as error:
        return Answer(node, None, f"failed to answer ({last_line(error):.200})")


def _silent(node: Node, ref: ObjectRef[T], seconds: float) -> Answer[T]:
    ray.cancel(ref, force=True)
    return Answer(node, None, f"did not answer within {seconds:g} s")
