"""Says in a member's folder why its workers died, before Train starts them again."""

from __future__ import annotations

import logging
from pathlib import Path

from ray.train import UserCallback
from ray.train.v2._internal.execution.context import TrainRunContext

from sfora_ray.cluster.causes import cause_of_workers
from sfora_ray.training.attempts import end_attempt
from sfora_ray.training.member_folder import MemberFolder

_log = logging.getLogger(__name__)


class Witness(UserCallback):
    """Runs in the Train controller, which alone learns of what its workers died."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def after_exception(self, run_context: TrainRunContext, worker_exceptions: dict[int, Exception]) -> None:  # noqa: ARG002
        """Record the cause; a full disk is no reason to give the member up, which an exception here would be."""
        try:
            end_attempt(MemberFolder(self._folder), *cause_of_workers(worker_exceptions))
        except OSError as error:
            _log.warning("%s: the end of an attempt was not recorded (%s)", self._folder, error)
