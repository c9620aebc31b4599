"""How many members fit on the cluster at a time, and what is missing when none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ray
from ray._private.state import state as cluster_state

from sfora_ray.config.pack import ResourceOptions
from sfora_ray.errors import ResourceError

# Shares such as 0.1 + 0.2 are sums of floats; Ray itself counts in ten-thousandths.
_ROUNDING = 1e-4
_GIGABYTE = 10**9


def need_per_worker(resources: ResourceOptions) -> dict[str, float]:
    """Return the resources of one worker, memory in bytes as Ray counts it, without those it does not need."""
    memory = round((resources.memory_gigabytes_per_worker or 0) * _GIGABYTE)
    need = {"CPU": float(resources.cpus_per_worker), "GPU": float(resources.gpus_per_worker), "memory": float(memory)}
    return {name: amount for name, amount in need.items() if amount > 0}


def workers_that_fit(nodes: Sequence[Mapping[str, float]], need: Mapping[str, float]) -> int:
    """Return how many workers with this need fit, each whole on one node."""
    return sum(min(_times(name, amount, node.get(name, 0.0)) for name, amount in need.items()) for node in nodes)


def _times(name: str, amount: float, there: float) -> int:
    if name == "GPU" and amount < 1:
        # A share lies on one GPU: 0.4 fits four times on two GPUs, not five times.
        return int(there) * int((1 + _ROUNDING) // amount)
    return int((there + _ROUNDING) // amount)


def members_that_fit(resources: ResourceOptions) -> int:
    """Return how many members fit at a time, at most ``max_concurrent_members``.

    A cluster that scales by itself is counted as large as it may become: it grows only for members that ask.
    """
    need = need_per_worker(resources)
    fit = max(workers_that_fit(nodes, need) for nodes in (_nodes(), [_most()])) // resources.workers_per_member
    return min(fit, resources.max_concurrent_members or fit)


def refuse_impossible(resources: ResourceOptions) -> None:
    """Prove that a member can run some time, before anything starts.

    A cluster that scales by itself is judged by the most it may become, if its configuration says so.

    Raises:
        ResourceError: a member needs more than there is; the message has both sides.
    """
    need = need_per_worker(resources)
    total = {name: amount * resources.workers_per_member for name, amount in need.items()}
    most = _most()
    if most and all(most.get(name, 0) >= amount for name, amount in total.items()):
        return
    nodes = _nodes()
    if workers_that_fit(nodes, need) >= resources.workers_per_member:
        return
    raise ResourceError(
        f"resources: one member needs {in_words(total)} ({resources.workers_per_member} worker(s) of "
        f"{in_words(need)}, each on one node), got a cluster of {len(nodes)} node(s) with "
        f"{in_words(_of_interest(all_resources(), need))}. Lower resources.* or join more nodes."
    )


def waited_in_vain(resources: ResourceOptions) -> str:
    """Return how long a member waited for what, and what is free now: the middle of an error's text."""
    need = need_per_worker(resources)
    free, total = (_of_interest(amounts, need) for amounts in (free_resources(), all_resources()))
    return (
        f"waited {resources.schedule_timeout_seconds:g} s (resources.schedule_timeout_seconds) for "
        f"{resources.workers_per_member} worker(s) of {in_words(need)}; "
        f"free now: {in_words(free)} of {in_words(total)}"
    )


def in_words(amounts: Mapping[str, float]) -> str:
    """Return e.g. ``2 CPU, 0.5 GPU, 4 GB memory``; memory is given in bytes."""
    words = [f"{amounts.get(name, 0):g} {name}" for name in ("CPU", "GPU") if name in amounts or name == "CPU"]
    memory = [f"{amounts['memory'] / _GIGABYTE:g} GB memory"] if "memory" in amounts else []
    return ", ".join(words + memory)


def _of_interest(amounts: Mapping[str, float], need: Mapping[str, float]) -> dict[str, float]:
    """Leave out the memory where nobody asked for any."""
    return {name: amount for name, amount in amounts.items() if name != "memory" or name in need}


def all_resources() -> dict[str, float]:
    """Return what the cluster has in all."""
    return dict(ray.cluster_resources())  # type: ignore[no-untyped-call]


def free_resources() -> dict[str, float]:
    """Return what is not taken now; Ray itself leaves out what is taken altogether, here it is 0."""
    free = ray.available_resources()  # type: ignore[no-untyped-call]
    return {name: free.get(name, 0.0) for name in all_resources()}


def _most() -> Mapping[str, float]:
    """Return the most that the cluster's configuration lets it become; nothing where it does not scale."""
    return cluster_state.get_max_resources_from_cluster_config() or {}


def _nodes() -> list[Mapping[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
