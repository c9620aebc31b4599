"""``fold`` and ``report``: what a pack that is trained already is made into, anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import RunFolderError
from sfora_ray.folds import FoldOptions, parse_fold
from sfora_ray.pack.local import blocks_from_folder, train_moments
from sfora_ray.pack.lock import run_lock
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import Summary
from sfora_ray.reporting import ReportPaths
from sfora_ray.tracking import Tracker
from sfora_ray.workflows.finish import score_pack, tell_everything, write_pack_report


def refold(run: RunFolder, folds: Sequence[str], *, say: Callable[[str], None]) -> Summary:
    """Fit and score the folds (those of the config if none are named), and renew summary, report and tracker.

    Raises:
        InputError: a fold is not known or does not fit, no member has finished, or another process writes the folder;
            nothing is changed then.
    """
    all_folds(run, folds)
    _finished(run)  # before waiting for the lock
    with run_lock(run.path):
        tracker = run.manifest().config.tracking.build()
        tracker.check()
        return _refold(run, all_folds(run, folds), tracker, say)


def rebuild_report(run: RunFolder) -> ReportPaths:
    """Write the report from the run folder alone.

    Raises:
        InputError: there is no summary yet, or another process writes the folder.
    """
    run.summary()  # before waiting for the lock
    with run_lock(run.path):
        run.home.fetch_results()
        return write_pack_report(run)


def all_folds(run: RunFolder, more: Sequence[str] = ()) -> tuple[FoldOptions, ...]:
    """Return the folds of the config, those fitted before, and ``more``: no ending loses one that was added.

    The config's own come first, so that what ships stays what it was.

    Raises:
        InputError: a fold is not known.
    """
    wanted = [*run.manifest().config.folds, *(parse_fold(text) for text in (*run.fold_names(), *more))]
    return tuple({fold.canonical_name: fold for fold in wanted}.values())


def _refold(run: RunFolder, folds: Sequence[FoldOptions], tracker: Tracker, say: Callable[[str], None]) -> Summary:
    say("reading embeddings")
    run.home.fetch_results()
    blocks = blocks_from_folder(run, _finished(run))
    summary = score_pack(run, blocks, train_moments(blocks), folds, say=say)
    write_pack_report(run)
    tell_everything(run, Mirror(run, tracker), run.manifest().config.tracking, "FINISHED")
    return summary


def _finished(run: RunFolder) -> tuple[MemberSpec, ...]:
    finished = run.finished()
    if not finished:
        raise RunFolderError(f"{run.path}: no member has finished. Finish it with `sfora-ray pack resume {run.path}`.")
    return finished
