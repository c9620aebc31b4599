"""Everything that a sweep folder says, told to a tracker."""

from __future__ import annotations

from collections.abc import Callable

from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.mirror import SweepMirror
from sfora_ray.tracking import RunStatus
from sfora_ray.workflows.patient import PATIENCE_SECONDS, told_patiently

_REASONS: dict[RunStatus, str] = {"FINISHED": "", "FAILED": "no trial came to anything", "KILLED": "interrupted"}


def tell_sweep(sweep: SweepFolder, mirror: SweepMirror, status: RunStatus | None) -> None:
    """Tell the tracker all that the sweep folder says; telling again changes nothing.

    Args:
        sweep: whose trials are told.
        mirror: of this sweep; ``mirror.busy`` is held by the caller where another thread uses it too.
        status: how the sweep ended; None while another process writes it: then only trials that have ended are closed.

    Raises:
        TrackerError: the tracker did not take it all.
    """
    mirror.check()
    mirror.open()
    mirror.follow()
    if sweep.ranking_path.is_file():
        mirror.tell_ranking()
    if status is not None:
        mirror.close(status, _REASONS[status])


def tell_sweep_within(sweep: SweepFolder, mirror: SweepMirror, status: RunStatus, say: Callable[[str], None]) -> bool:
    """Tell everything, waiting for an absent tracker for a while; return whether it was told."""

    def tell() -> None:
        with mirror.busy:
            tell_sweep(sweep, mirror, status)

    return told_patiently(tell, status, PATIENCE_SECONDS[status], f"sfora-ray mlflow sync {sweep.path}", say)
