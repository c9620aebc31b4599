"""Storage that fails for a moment: full disks that are emptied, shares that come back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from sfora_ray.errors import StorageError

T = TypeVar("T")

_log = logging.getLogger(__name__)

PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0)


def patiently(what: str, action: Callable[[], T]) -> T:
    """Return what the action returns, trying it again after an error of the storage and each pause.

    Raises:
        StorageError: it failed each time; the message has ``what`` and the last error.
    """
    for pause in PAUSES_SECONDS:
        try:
            return action()
        except (OSError, StorageError) as error:
            _log.warning("%s: %s; trying again in %g s", what, error, pause)
        time.sleep(pause)
    try:
        return action()
    except (OSError, StorageError) as error:
        raise StorageError(
            f"{what}: could not be written or read in {len(PAUSES_SECONDS) + 1} tries, got '{error}'. "
            "Free space or bring the storage back; the member then goes on from its last checkpoint."
        ) from error
