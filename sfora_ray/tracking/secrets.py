"""What no tracker may be told: passwords, tokens and keys that stand in the environment or in an address.

A secret reaches a record by accident: a storage error quotes its address, an exception prints a header. So every text
that leaves for a tracker passes here last.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from sfora_ray.tracking.address import conceal

_SECRET_NAME = re.compile(r"(?:PASSWORD|PASSWD|TOKEN|SECRET|KEY|KEY_ID|CREDENTIALS?)$", re.IGNORECASE)
HIDDEN = "***"
_SHORTEST = 4
"""A shorter value is no secret and would be found everywhere."""


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables that are named like secrets, the longest first."""
    found = {value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= _SHORTEST}
    return sorted(found, key=len, reverse=True)


def without_secrets(text: str, uri: str = "") -> str:
    """Return ``text`` with ``***`` for every secret of the environment and every password in an address."""
    for secret in secrets_in(os.environ):
        text = text.replace(secret, HIDDEN)
    return conceal(text, uri)
