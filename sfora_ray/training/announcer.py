"""Says what a member is doing, often enough to watch and seldom enough to cost nothing."""

from __future__ import annotations

import time
from typing import Literal

from sfora_ray.training.member_folder import MemberFolder, Progress


def now_ms() -> int:
    """Return the Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


class Announcer:
    """Rewrites a member's ``progress.json`` every so often; silent workers say nothing."""

    def __init__(self, folder: MemberFolder, epochs: int, *, every_seconds: float, silent: bool) -> None:
        self._folder = folder
        self._epochs = epochs
        self._every_seconds = every_seconds
        self._silent = silent
        self._next = 0.0

    def state(
        self, state: Literal["preparing", "evaluating", "embedding"], epoch: int = 0, steps_per_epoch: int = 0
    ) -> None:
        """Say at once that something else is going on now: all steps of ``epoch`` are done."""
        self._write(
            Progress(
                state=state,
                epoch=epoch,
                epochs=self._epochs,
                step=steps_per_epoch,
                steps_per_epoch=steps_per_epoch,
                time_ms=now_ms(),
            )
        )

    def preparing(self, done: int, total: int) -> None:
        """Say how many images of the node's cache are ready."""
        if self._is_time():
            note = f"decoding {done}/{total} images"
            self._write(Progress(state="preparing", epochs=self._epochs, time_ms=now_ms(), note=note))

    def step(self, epoch: int, step: int, steps: int, loss: float | None, images_per_second: float) -> None:
        """Say where training stands."""
        if self._is_time():
            self._write(
                Progress(
                    state="training",
                    epoch=epoch,
                    epochs=self._epochs,
                    step=step,
                    steps_per_epoch=steps,
                    loss=loss,
                    images_per_second=images_per_second,
                    time_ms=now_ms(),
                )
            )

    def _is_time(self) -> bool:
        return time.monotonic() >= self._next

    def _write(self, progress: Progress) -> None:
        if not self._silent:
            self._folder.write_progress(progress)
            self._next = time.monotonic() + self._every_seconds
