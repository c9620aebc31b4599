"""What a tracker can do, in this project's words.

A tracker is a mirror: everything it is told is already in the run folder. Runs are found by a key of ours,
so that telling the same thing twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from sfora_ray.options import Options

RunStatus = Literal["FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True)
class MetricPoint:
    """One value of one metric. ``step`` is the epoch, ``timestamp_ms`` the Unix time in milliseconds."""

    key: str
    value: float
    step: int
    timestamp_ms: int


@dataclass(frozen=True)
class OpenRun:
    """A run that the tracker shows as running.

    Attributes:
        id: the tracker's name of it.
        key: ours.
        name: what people see.
        parent: id of the run above it, or None.
        started_ms: Unix time in milliseconds.
        tags: all of its tags.
    """

    id: str
    key: str
    name: str
    parent: str | None
    started_ms: int
    tags: Mapping[str, str]


class Tracker(Protocol):
    """Where runs, their metrics and their files are shown to people."""

    def check(self) -> None:
        """Prove that the server answers; raises ``TrackerError`` with the way out if it does not."""
        ...

    def open_run(self, key: str, name: str, *, parent: str | None, tags: Mapping[str, str]) -> str:
        """Return the id of the run with this key, made if there is none; its state becomes RUNNING.

        Where there are several (a request that timed out was carried out all the same), the oldest stays.
        """
        ...

    def running(self, prefix: str = "") -> Sequence[OpenRun]:
        """Return the runs of ours that are shown as RUNNING and whose key starts with ``prefix``, oldest first."""
        ...

    def tags(self, run: str) -> Mapping[str, str]:
        """Return a run's tags."""
        ...

    def log_params(self, run: str, params: Mapping[str, str]) -> None:
        """Record parameters; a repeat with equal values is no error."""
        ...

    def set_tags(self, run: str, tags: Mapping[str, str]) -> None:
        """Set or replace tags; an empty value takes the tag away."""
        ...

    def log_metrics(self, run: str, points: Sequence[MetricPoint]) -> None:
        """Append points; those at or before the last step already there are left out, key by key."""
        ...

    def log_dataset(self, run: str, name: str, digest: str, context: str) -> None:
        """Record which data set the run used."""
        ...

    def log_file(self, run: str, path: Path, folder: str = "") -> None:
        """Store a file as an artifact below ``folder``."""
        ...

    def close_run(self, run: str, status: RunStatus) -> None:
        """End the run with its final state."""
        ...


class TrackingOptions(Options):
    """Options of a tracker."""

    def build(self) -> Tracker:
        """Make the tracker; nothing is sent yet."""
        raise NotImplementedError
