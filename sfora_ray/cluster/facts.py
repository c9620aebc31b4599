"""What the doctor asks Ray: do its nodes agree, what do they have, does its State API answer, whence comes the token.

Nothing here judges; see :mod:`sfora_ray.workflows.checks` for what is made of the answers.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import ray
from ray import ObjectRef
from ray.util.state import list_actors, list_nodes

from sfora_ray.cluster.nodes import Answer, Node, alive_nodes, ask_each
from sfora_ray.cluster.session import cluster_address
from sfora_ray.training.environment import inherited

_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Gpu:
    """A GPU that torch sees."""

    name: str
    num_bytes: int


@dataclass(frozen=True)
class NodeFacts:
    """What a process on a node finds there.

    Attributes:
        versions: of Python, Ray and torch.
        gpus: those that torch sees.
        shared_memory_bytes: size of ``/dev/shm``, in all; 0 where there is none.
    """

    versions: Mapping[str, str]
    gpus: tuple[Gpu, ...]
    shared_memory_bytes: int


@ray.remote(num_cpus=0, max_retries=0)
def _facts_there() -> NodeFacts:
    return facts_here()


def facts_here() -> NodeFacts:
    """Return what this process finds on its machine."""
    import torch

    devices = [torch.cuda.get_device_properties(place) for place in range(torch.cuda.device_count())]
    versions = {"python": platform.python_version(), "ray": ray.__version__, "torch": torch.__version__}
    return NodeFacts(versions, tuple(Gpu(one.name, one.total_memory) for one in devices), _size_of(_SHARED_MEMORY))


def _size_of(file_system: Path) -> int:
    if not file_system.exists():
        return 0
    size = os.statvfs(file_system)
    return size.f_frsize * size.f_blocks


def node_facts(*, seconds: float) -> list[Answer[NodeFacts]]:
    """Ask every node what is there; one that does not answer in time has a fault instead of facts."""
    # Our sessions hide every GPU from tasks that ask for none; this one task is to see them.
    sighted = {"env_vars": {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}}

    def send(node: Node) -> ObjectRef[NodeFacts]:
        return _facts_there.options(scheduling_strategy=node.only_here, runtime_env=sighted).remote()

    return ask_each(alive_nodes(), send, seconds=seconds)


def ray_version() -> str:
    """Return the version of Ray here; a cluster of another version refuses the connection."""
    return str(ray.__version__)


def state_api_fault(*, seconds: int) -> str:
    """Return why Ray's State API does not answer, or an empty string."""
    try:
        # Else Ray looks for one on this machine, where others may run as well; the variable outweighs any argument.
        with inherited({"RAY_ADDRESS": cluster_address()}):
            here = list_nodes(filters=[("node_id", "=", ray.get_runtime_context().get_node_id())], timeout=seconds)
            list_actors(limit=1, timeout=seconds)
    except Exception as error:  # Ray has a dozen kinds for it, and each means the same here
        return " ".join(str(error).split())[:160] or type(error).__name__
    # A cluster without a dashboard names the usual port all the same, where another's may listen.
    return "" if here else "the one that answers is another cluster's"


@dataclass(frozen=True)
class TokenSource:
    """Where Ray takes its token from.

    Attributes:
        mode: ``token``, ``disabled``, or empty where ``RAY_AUTH_MODE`` leaves it to Ray.
        source: the variable or the file that holds the token; empty where there is none. Never the token itself.
        fault: what is wrong with it.
    """

    mode: str
    source: str
    fault: str = ""


def token_source(environment: Mapping[str, str], home: Path) -> TokenSource:
    """Return the source of the token in Ray's own order: RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH, ~/.ray/auth_token."""
    mode = environment.get("RAY_AUTH_MODE", "").lower()
    if environment.get("RAY_AUTH_TOKEN"):
        return TokenSource(mode, "RAY_AUTH_TOKEN")
    named = environment.get("RAY_AUTH_TOKEN_PATH")
    if named:
        return TokenSource(mode, f"RAY_AUTH_TOKEN_PATH ({named})", _fault_of_file(Path(named).expanduser()))
    usual = home / ".ray" / "auth_token"
    return TokenSource(mode, str(usual), _fault_of_file(usual)) if usual.exists() else TokenSource(mode, "")


def _fault_of_file(path: Path) -> str:
    try:
        return "" if path.read_bytes().strip() else "the file is empty"
    except OSError as error:
        return f"the file cannot be read ({error.strerror})"
