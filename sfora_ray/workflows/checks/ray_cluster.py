"""Ray: the token, the cluster, its nodes, what each has, and whether they share the pack's folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfora_ray.config.pack import PackConfig, ResourceOptions
from sfora_ray.workflows.checks.finding import Finding

if TYPE_CHECKING:
    from sfora_ray.cluster.facts import Gpu, NodeFacts, TokenSource
    from sfora_ray.cluster.nodes import Answer, Node

_GIB = 1 << 30
_SECONDS_OF_A_NODE = 60.0
_SECONDS_OF_STATE = 10


def token() -> list[Finding]:
    """Tell where Ray's token comes from, never what it is."""
    from sfora_ray.cluster.facts import token_source

    joins = os.environ.get("RAY_ADDRESS", "local") != "local"
    return [judge_token(token_source(os.environ, Path.home()), joins=joins)]


def judge_token(token: TokenSource, *, joins: bool) -> Finding:
    """Judge the source of the token; ``joins``: a cluster is joined that somebody else has started."""
    area = "Ray token"
    if token.mode == "disabled":
        found = "RAY_AUTH_MODE=disabled: whoever reaches the cluster's ports can run code on it"
        return Finding(area, "yellow", found, "Unset it, or keep the ports to yourself")
    if token.fault:
        return Finding(area, "red", f"{token.source}: {token.fault}", "Write the cluster's token there")
    if token.source:
        return Finding(area, "green", f"from {token.source}")
    if not joins:
        return Finding(area, "green", "none yet; Ray makes one when it starts on this machine")
    advice = "Set RAY_AUTH_TOKEN_PATH to a file with the cluster's token, unless it asks for none"
    return Finding(area, "red" if token.mode == "token" else "yellow", "none found", advice)


def cluster() -> list[Finding]:
    """Tell which cluster this process is connected to, and of what size."""
    from sfora_ray.cluster.capacity import all_resources, in_words
    from sfora_ray.cluster.facts import ray_version
    from sfora_ray.cluster.nodes import alive_nodes

    address = os.environ.get("RAY_ADDRESS", "local")
    where = "started on this machine" if address == "local" else f"RAY_ADDRESS={address}"
    total = {name: amount for name, amount in all_resources().items() if name in ("CPU", "GPU")}
    size = f"{len(alive_nodes())} node(s), {in_words(total)}"
    return [Finding("Ray", "green", f"{ray_version()} here and there, {where}: {size}")]


def members(resources: ResourceOptions) -> list[Finding]:
    """Prove that a member can run some time, and tell how many do at once."""
    from sfora_ray.cluster.capacity import members_that_fit, refuse_impossible

    refuse_impossible(resources)
    return [Finding("members", "green", f"{members_that_fit(resources)} at a time")]


def state_api() -> list[Finding]:
    """Ask Ray's State API for its nodes and actors."""
    from sfora_ray.cluster.facts import state_api_fault

    fault = state_api_fault(seconds=_SECONDS_OF_STATE)
    if not fault:
        return [Finding("State API", "green", "lists nodes and actors")]
    advice = "pip install 'ray[default]' on the head and start it with its dashboard; packs run without, sweeps do not"
    return [Finding("State API", "yellow", f"no answer: {fault}", advice)]


def nodes() -> list[Finding]:
    """Ask every node for its versions, its GPUs and its shared memory."""
    from sfora_ray.cluster.facts import node_facts

    answers = node_facts(seconds=_SECONDS_OF_A_NODE)
    found = [judge_versions(answers)]
    return [*found, judge_gpus(answers), judge_shared_memory(answers)] if _heard(answers) else found


def judge_versions(answers: Sequence[Answer[NodeFacts]]) -> Finding:
    """Judge whether every node answers, with the same versions."""
    silent = [f"{answer.node.name} {answer.fault}" for answer in answers if answer.value is None]
    if silent:
        advice = "See that the node lives and has this package installed as it is here"
        return Finding("nodes", "red", "; ".join(silent), advice)
    told = [(node.name, _versions_in_words(facts)) for node, facts in _heard(answers)]
    if len({versions for _, versions in told}) > 1:
        differing = "; ".join(f"{name}: {versions}" for name, versions in told)
        return Finding("nodes", "red", f"versions differ: {differing}", "Install the same requirements.lock on each")
    return Finding("nodes", "green", f"{', '.join(name for name, _ in told)}: {told[0][1] if told else 'none'}")


def _versions_in_words(facts: NodeFacts) -> str:
    return ", ".join(f"{name} {version}" for name, version in facts.versions.items())


def judge_gpus(answers: Sequence[Answer[NodeFacts]]) -> Finding:
    """Judge the GPUs that Ray schedules against those that torch sees, node by node."""
    found, unseen, resting = [], False, False
    for node, facts in _heard(answers):
        scheduled, seen = round(node.resources.get("GPU", 0)), len(facts.gpus)
        unseen, resting = unseen or seen < scheduled, resting or seen > scheduled
        if scheduled or seen:
            found.append(f"{node.name}: Ray schedules {scheduled}, torch sees {_in_words(facts.gpus)}")
    told = "; ".join(found) or "none"
    if unseen:
        advice = "See nvidia-smi, torch's CUDA build and `ray start --num-gpus` on that node"
        return Finding("GPUs", "red", told, advice)
    if resting:
        advice = "The others stay idle; start the node anew without --num-gpus to use them"
        return Finding("GPUs", "yellow", told, advice)
    return Finding("GPUs", "green", told)


def judge_shared_memory(answers: Sequence[Answer[NodeFacts]]) -> Finding:
    """Judge the size of /dev/shm against the object store that Ray keeps there."""
    found, small = [], False
    for node, facts in _heard(answers):
        store = node.resources.get("object_store_memory", 0)
        small = small or facts.shared_memory_bytes < store
        sizes = f"{facts.shared_memory_bytes / _GIB:.1f} GiB for an object store of {store / _GIB:.1f} GiB"
        found.append(f"{node.name}: {sizes}")
    told = "; ".join(found)
    if small:
        advice = "Ray's store lies in /tmp then and is slow: enlarge it (docker --shm-size, an emptyDir of Memory)"
        return Finding("/dev/shm", "yellow", told, advice)
    return Finding("/dev/shm", "green", told)


def _heard(answers: Sequence[Answer[NodeFacts]]) -> list[tuple[Node, NodeFacts]]:
    return [(answer.node, answer.value) for answer in answers if answer.value is not None]


def _in_words(gpus: Sequence[Gpu]) -> str:
    """Return e.g. ``2 x NVIDIA H200 (139 GiB)``."""
    kinds = Counter(f"{gpu.name} ({gpu.num_bytes / _GIB:.0f} GiB)" for gpu in gpus)
    return ", ".join(f"{count} x {kind}" for kind, count in kinds.items()) or "none"


def shared_output(config: PackConfig) -> list[Finding]:
    """Prove that every node sees the folder of the runs."""
    from sfora_ray.cluster.probe import storage_probe

    count = storage_probe(config.output)
    found = "this node is the only one" if count == 1 else f"all {count} nodes read and write {config.output}"
    return [Finding("shared output", "green", found)]
