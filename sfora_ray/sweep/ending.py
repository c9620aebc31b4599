"""How a sweep and its trials ended, as a tracker's states, from the sweep folder alone."""

from __future__ import annotations

from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.records import SweepManifest, TrialEnd
from sfora_ray.sweep.told import told
from sfora_ray.tracking import RunStatus

SWEEP = "sweep"
"""The part of a sweep that is the parent run; trials go by their names."""


def key_prefix(manifest: SweepManifest) -> str:
    """Return what the keys of all runs of a sweep start with."""
    return f"{manifest.name}-{manifest.digest}/"


def ended(part: str, end: TrialEnd | None, status: RunStatus) -> RunStatus:
    """Return the final state of a part's run, ``status`` being the parent's."""
    if part == SWEEP:
        return status
    if end is None:
        return "KILLED" if status == "FINISHED" else status
    return "FINISHED" if end.status in ("finished", "stopped") else "FAILED"


def is_complete(sweep: SweepFolder) -> bool:
    """Return whether the sweep has all its trials, or all that its space has, and each has ended."""
    config, trials = sweep.config(), sweep.trials()
    if not trials or any(trial.end is None for trial in trials):
        return False
    if config.num_trials is not None and len(trials) >= config.num_trials:
        return True
    return config.searcher.build(config.search_space).propose(trials[-1].number + 1, told(sweep)) is None


def sweep_status(sweep: SweepFolder) -> RunStatus:
    """Return how the sweep ended: KILLED where trials or the ranking are still to come."""
    if not is_complete(sweep) or not sweep.ranking_path.is_file():
        return "KILLED"
    ends = [trial.end for trial in sweep.trials()]
    return "FINISHED" if any(end is not None and end.status in ("finished", "stopped") for end in ends) else "FAILED"
