"""Which variables of the environment a worker on another machine needs to reach the store, and no others."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sfora_ray.storage.address import is_address

_TRAVELLING = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)


def storage_environment(place: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that travel to whoever works at ``place``; none where that is a folder."""
    if not is_address(place):
        return {}
    return {name: environment[name] for name in _TRAVELLING if name in environment}
