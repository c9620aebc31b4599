"""Whether anybody listens at a cluster's address, found out within seconds: Ray itself tries for minutes."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from contextlib import closing

import ray

from sfora_ray.errors import ResourceError

_PATIENCE_SECONDS = 5.0


def refuse_silent(address: str) -> None:
    """Prove that somebody listens at ``host:port``; an address of another form (``auto``, ``local``) is not judged.

    Raises:
        ResourceError: nobody does.
    """
    found = re.fullmatch(r"(?:ray://)?([^:/]+|\[[^\]]+\]):(\d+)", address)
    if found is None:
        return
    host, port = found[1].strip("[]"), int(found[2])
    fault = _fault_of_all([host, *_own_address(host)], port)
    if fault:
        raise ResourceError(
            f"RAY_ADDRESS: nobody listens there, got {address!r} ({fault}). "
            "Start a cluster with `ray start --head`, correct the address, or unset it to use this machine."
        )


def _own_address(host: str) -> list[str]:
    """Return where Ray looks if told to look at the loopback: its head may listen at the machine's address alone."""
    if host not in ("localhost", "127.0.0.1", "::1"):
        return []
    return [ray.util.get_node_ip_address()]  # type: ignore[no-untyped-call]


def _fault_of_all(hosts: Sequence[str], port: int) -> str:
    fault = ""
    for host in hosts:
        try:
            with closing(socket.create_connection((host, port), timeout=_PATIENCE_SECONDS)):
                return ""
        except (OSError, OverflowError) as error:
            fault = fault or str(error)
    return fault
