"""Being connected to a Ray cluster: the one that is there, or a local one for as long as it is needed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from sfora_ray.errors import ResourceError

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
def connected() -> Iterator[None]:
    """Use the cluster this process is connected to, else the one RAY_ADDRESS names, else start one here.

    A cluster that was started or joined here is left again; one that was there before stays.

    Raises:
        ResourceError: the cluster of RAY_ADDRESS does not answer.
    """
    if ray.is_initialized():
        yield
        return
    for key, value in _QUIET.items():
        os.environ.setdefault(key, value)
    address = os.environ.get("RAY_ADDRESS", "local")
    try:
        ray.init(
            address=address,
            logging_level=logging.ERROR,
            log_to_driver=False,
            configure_logging=True,
            runtime_env={"env_vars": dict(_QUIET)} if address != "local" else None,
        )
    except (ConnectionError, RuntimeError, TimeoutError) as error:
        raise ResourceError(
            f"RAY_ADDRESS: no Ray cluster answers, got {address!r} ({error}). "
            "Start one with `ray start --head`, correct the address, or unset it to use this machine."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()
