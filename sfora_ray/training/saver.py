"""What happens between two steps of a member: its state is saved when that is due, and it leaves when asked to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from sfora_ray.errors import ReplacedError, StoppedError, StorageError
from sfora_ray.training.attempts import current_attempt
from sfora_ray.training.checkpoint import LoopState, save_checkpoint
from sfora_ray.training.epoch import GUARD_EVERY, EpochSoFar
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.parts import Parts
from sfora_ray.training.patience import patiently

_log = logging.getLogger(__name__)

_MISSED_AT_MOST = 3


class Saver:
    """Saves a member's loop state, and looks whether it may go on.

    Args:
        parts: the member.
        folder: where it is saved.
        holder: this attempt's name; empty for workers other than the first, which save nothing.
    """

    def __init__(self, parts: Parts, folder: MemberFolder, holder: str) -> None:
        self._parts = parts
        self._folder = folder
        self._holder = holder
        self._next_look = 0.0
        self._was_asked = False
        self._saved_for_leaving = False
        self._missed = 0
        self._missed_in_all = 0

    def save(self, state: LoopState) -> None:
        """Write a checkpoint. One that cannot be written is done without, up to three in a row.

        Raises:
            StorageError: the storage has failed for the third checkpoint in a row.
            ReplacedError: another attempt has taken over; it alone writes.
        """
        if not self._parts.worker.is_first:
            return
        self.refuse_if_replaced()
        try:
            patiently(
                f"{self._folder.checkpoint_path}",
                lambda: save_checkpoint(self._folder.checkpoint_path, self._parts, state),
            )
            self._folder.home.publish()
            self._missed = 0
        except StorageError as error:
            self._missed += 1
            self._missed_in_all += 1
            if self._missed >= _MISSED_AT_MOST:
                raise
            _log.warning("going on without this checkpoint: %s", error)

    def warnings(self) -> tuple[str, ...]:
        """Return what whoever reads the result should know."""
        if not self._missed_in_all:
            return ()
        return (f"{self._missed_in_all} checkpoint(s) could not be written; the storage was away or full",)

    def between(self, state: LoopState) -> Callable[[int, Callable[[], EpochSoFar]], None]:
        """Return what is to be done between the steps of the epoch after ``state``."""
        every = self._parts.config.training.checkpoint_steps

        def look(done: int, so_far: Callable[[], EpochSoFar]) -> None:
            if self._must_stop():
                self._save_and_leave(replace(state, under_way=so_far()), state.epochs_done + 1, done)
            if (every is not None and done % every == 0) or self._is_leaving(done):
                self.save(replace(state, under_way=so_far()))

        return look

    def leave_if_asked(self, state: LoopState) -> None:
        """Look between two epochs: the state has just been saved, or is saved now.

        Raises:
            StoppedError: the member was asked to stop, or another attempt has taken over.
        """
        if self._must_stop():
            self._save_and_leave(state, state.epochs_done, self._parts.sampler.steps_per_epoch)

    def refuse_if_replaced(self) -> None:
        """Prove that this attempt may write; a folder that cannot be read just now proves nothing else.

        Raises:
            ReplacedError: another attempt has taken over.
        """
        try:
            attempt = current_attempt(self._folder)
        except (OSError, StorageError) as error:
            _log.warning("%s: not readable now (%s)", self._folder.attempts_path, error)
            return
        if attempt is not None and attempt.holder != self._holder:
            raise ReplacedError(
                f"another attempt (process {attempt.pid} on {attempt.host}) has taken over; this one leaves"
            )

    def _must_stop(self) -> bool:
        if not self._holder or self._was_asked or time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + self._parts.config.training.progress_seconds
        self.refuse_if_replaced()
        try:
            self._was_asked = self._folder.stop_path.exists()
        except OSError as error:
            _log.warning("%s: not readable now (%s)", self._folder.stop_path, error)
        return self._was_asked

    def _is_leaving(self, done: int) -> bool:
        if self._saved_for_leaving or done % GUARD_EVERY:
            return False
        self._saved_for_leaving = self._parts.worker.leaving()
        return self._saved_for_leaving

    def _save_and_leave(self, state: LoopState, epoch: int, step: int) -> None:
        self.save(state)
        if self._parts.worker.world_size > 1:
            return  # the others would wait for this worker in the next step: it goes on until all are ended together
        raise StoppedError(f"stopped at epoch {epoch}, step {step}; its state is saved")
