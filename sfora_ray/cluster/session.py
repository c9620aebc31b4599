"""Being connected to a Ray cluster: the one that is there, or a local one for as long as it is needed.

All that a local one opens listens on the loopback interface alone. By itself Ray listens on every interface of the
machine, for nodes that might join, on Linux even where it is told the address 127.0.0.1; only where clusters are
switched off, its default on other systems, do all its processes use loopback. A cluster that others started is as
they started it: `ray start --node-ip-address` and a firewall are theirs. Members of several workers also open a
rendezvous of torch's, which listens everywhere and which no setting of torch's binds. Tokens, where Ray wants them,
are read and kept by Ray itself.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

import ray
from ray._private import ray_constants

from sfora_ray.cluster.reach import refuse_silent
from sfora_ray.errors import ResourceError
from sfora_ray.training.environment import inherited

# What Ray would otherwise do unasked: report usage, rebuild a `uv run` environment on every worker, change the
# working directory of training workers, and say each of a hundred things twice.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",
}


@contextmanager
def connected(variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Use the cluster this process is connected to, else the one RAY_ADDRESS names, else start one here.

    A cluster that was started or joined here is left again; one that was there before stays.

    Args:
        variables: environment of every process that works for this one, where the connection is made here.

    Raises:
        ResourceError: the cluster of RAY_ADDRESS does not answer.
    """
    if ray.is_initialized():
        yield
        return
    for key, value in _QUIET.items():
        os.environ.setdefault(key, value)
    address = os.environ.get("RAY_ADDRESS", "local")
    refuse_silent(address)
    working = dict(variables or {})
    with _only_here(working) if address == "local" else nullcontext():
        _connect(address, {**_QUIET, **working})
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _only_here(variables: Mapping[str, str]) -> Iterator[None]:
    with inherited(variables), _loopback_only():
        yield


def _connect(address: str, variables: dict[str, str]) -> None:
    try:
        ray.init(
            address=address,
            logging_level=logging.ERROR,
            log_to_driver=False,
            configure_logging=True,
            runtime_env={"env_vars": variables} if address != "local" else None,
        )
    except (ConnectionError, RuntimeError, TimeoutError) as error:
        raise ResourceError(
            f"RAY_ADDRESS: no Ray cluster answers, got {address!r} ({error}). "
            "Start one with `ray start --head`, correct the address, or unset it to use this machine."
        ) from error


@contextmanager
def _loopback_only() -> Iterator[None]:
    """Let Ray think of this machine as one that joins no cluster, here and in the processes that it starts."""
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    with inherited({ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR: "0"}):
        try:
            yield
        finally:
            ray_constants.ENABLE_RAY_CLUSTER = before


def cluster_address() -> str:
    """Return the address by which another process on this machine joins the cluster this one is connected to."""
    return str(ray.get_runtime_context().gcs_address)
