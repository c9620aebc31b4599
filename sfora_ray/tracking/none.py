"""The tracker for those who want none: the run folder alone tells the story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from sfora_ray.tracking.base import MetricPoint, OpenRun, RunStatus, Tracker, TrackingOptions


class NoTracker:
    """Takes everything and records nothing; the id of a run is its key."""

    def check(self) -> None:
        """Succeed: there is nothing to reach."""

    def open_run(self, key: str, name: str, *, parent: str | None, tags: Mapping[str, str]) -> str:  # noqa: ARG002
        """Return ``key``."""
        return key

    def running(self, prefix: str = "") -> Sequence[OpenRun]:  # noqa: ARG002
        """Return nothing."""
        return ()

    def tags(self, run: str) -> Mapping[str, str]:  # noqa: ARG002
        """Return nothing."""
        return {}

    def log_params(self, run: str, params: Mapping[str, str]) -> None:
        """Record nothing."""

    def set_tags(self, run: str, tags: Mapping[str, str]) -> None:
        """Record nothing."""

    def log_metrics(self, run: str, points: Sequence[MetricPoint]) -> None:
        """Record nothing."""

    def log_dataset(self, run: str, name: str, digest: str, context: str) -> None:
        """Record nothing."""

    def log_file(self, run: str, path: Path, folder: str = "") -> None:
        """Record nothing."""

    def close_run(self, run: str, status: RunStatus) -> None:
        """Record nothing."""


class NoTrackingOptions(TrackingOptions):
    """No tracker."""

    name: Literal["none"] = "none"

    def build(self) -> Tracker:
        """Make the tracker that records nothing."""
        return NoTracker()
