"""How a pack and its parts ended, from the run folder alone."""

from __future__ import annotations

from collections.abc import Mapping

from sfora_ray.config.member import MemberResult
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import Summary
from sfora_ray.tracking import RunStatus

PACK = "pack"
"""The part of a pack that is the parent run; members go by their ids."""
FOLD, CURVE = "fold:", "curve:"
_STEPS_PER_EPOCH = 1000  # more than a pack has members


def ended(part: str, results: Mapping[str, MemberResult], status: RunStatus) -> RunStatus:
    """Return the final state of a part's run, ``status`` being the parent's."""
    if part in results:
        return "FINISHED" if results[part].status == "finished" else "FAILED"
    if part == PACK:
        return status
    if part.startswith((FOLD, CURVE)):
        return "FINISHED"
    return "KILLED" if status == "FINISHED" else status


def final_results(run: RunFolder) -> dict[str, MemberResult]:
    """Return the results that stand, by member id: not those that an extension makes members go on from."""
    manifest = run.manifest()
    found = run.results().items()
    return {part: result for part, result in found if result.status != "finished" or manifest.is_finished(result)}


def summary_fits(run: RunFolder) -> bool:
    """Return whether there is a summary and it is of the members as they are now, not as before an extension."""
    if not run.summary_path.is_file():
        return False
    summary = run.summary()
    counted = {member.id for member in summary.members if member.status == "finished"}
    return (
        counted == {spec.id for spec in run.finished()} and summary.pack.epochs == run.manifest().config.training.epochs
    )


def pack_status(run: RunFolder) -> RunStatus:
    """Return how the pack ended: KILLED where members or the summary are still to come."""
    results = final_results(run)
    if any(spec.id not in results for spec in run.specs()):
        return "KILLED"
    if summary_fits(run):
        return "FINISHED"
    return "FAILED" if len(run.finished()) < run.manifest().config.min_members else "KILLED"


def pack_step(summary: Summary) -> int:
    """Return the step at which a tracker is told of a pack: it grows by epochs first, then by finished members."""
    return summary.pack.epochs * _STEPS_PER_EPOCH + summary.pack.num_members
