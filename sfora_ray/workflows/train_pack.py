"""From a run folder with members to train to a folded, reported and logged pack: the common end of every command."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.errors import BusyError, SforaError, StorageError
from sfora_ray.pack.following import following
from sfora_ray.pack.keeper import kept
from sfora_ray.pack.launcher import Launched
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.status import MemberView, member_views
from sfora_ray.pack.summary import Summary
from sfora_ray.tracking import RunStatus, Tracker
from sfora_ray.training.attempts import end_attempt
from sfora_ray.workflows.finish import score_pack, tell_within, write_pack_report
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.refold import all_folds

Watch = Callable[[Sequence[MemberView]], None]
Say = Callable[[str], None]

_SECONDS_BETWEEN_LOOKS = 0.5


def train_and_finish(run: RunFolder, tracker: Tracker, launcher: Launcher, *, watch: Watch, say: Say) -> Summary:
    """Train what is not finished, then score, summarise and report. The tracker can spoil none of it.

    Raises:
        BusyError: another process has taken over the run; the tracker is told by that one.
        SforaError: fewer members finished than the pack needs; the message has each reason.
    """
    mirror = Mirror(run, tracker)
    status: RunStatus | None = "FAILED"
    with kept(run) as keeper, following(mirror):
        try:
            summary = _fold(run, _train(run, launcher, watch), say)
            status = "FINISHED"
            return summary
        except KeyboardInterrupt:
            status = "KILLED"
            raise
        except BusyError:
            status = None
            raise
        finally:
            if status == "FINISHED":
                say("logging metrics, models and the report")
            if status is None or tell_within(run, mirror, status, say=say):
                keeper.dismiss()


def _fold(run: RunFolder, members: Launched, say: Say) -> Summary:
    run.home.fetch_results()
    finished = _enough(run)
    say("gathering embeddings")
    blocks = members.gather(finished)
    summary = score_pack(run, blocks, members.moments(blocks), all_folds(run), say=say)
    say("writing the report")
    write_pack_report(run)
    return summary


def _enough(run: RunFolder) -> tuple[MemberSpec, ...]:
    """Return the members that finished; raises ``SforaError`` if they are too few to be folded."""
    finished, config = run.finished(), run.manifest().config
    if not finished:
        raise SforaError(f"no member finished: {_reasons(run)}. Try again: sfora-ray pack resume {run.path}")
    if len(finished) < config.min_members:
        raise SforaError(
            f"{len(finished)} of {len(config.seeds)} members finished, fewer than min_members ({config.min_members}), "
            f"so nothing is folded: {_reasons(run)}. Train the others again: sfora-ray pack resume {run.path}"
        )
    return finished


def _reasons(run: RunFolder) -> str:
    results, finished = run.results(), run.finished()
    missing = [spec for spec in run.specs() if spec not in finished]
    return "; ".join(f"{spec.id} (seed {spec.seed}): {_reason(results.get(spec.id))}" for spec in missing)


def _reason(result: MemberResult | None) -> str:
    return "it left no result" if result is None else result.reason.removesuffix(".")


def _train(run: RunFolder, launcher: Launcher, watch: Watch) -> Launched:
    """Train every member that has not finished, showing them as they go."""
    done = run.finished()
    specs = [spec for spec in run.specs() if spec not in done]
    _forget_ends(run, specs)
    members = launcher.launch(run, specs)
    try:
        while True:
            states = members.poll()
            with suppress(OSError, StorageError):  # it cannot be read just now: nothing to show this time
                watch(member_views(run, states))
            if all(state in ("finished", "failed", "stopped") for state in states.values()):
                return members
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    except BaseException:
        members.stop()
        raise


def _forget_ends(run: RunFolder, specs: Sequence[MemberSpec]) -> None:
    """Let members go on: those that failed, and those that finished before the pack was extended."""
    for spec in specs:
        folder = run.member(spec)
        result = folder.result()
        if result is not None:
            end_attempt(folder, result.cause, result.reason)
        folder.result_path.unlink(missing_ok=True)
        folder.progress_path.unlink(missing_ok=True)
